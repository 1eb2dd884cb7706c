// Blocks of memory as bars: from left to right the events of one span or the steps of a plan, from top to
// bottom the addresses, with ranges that nothing uses left out.

// Bars of one span of a run, over the moments before its first event and after each: {from, to, address, bytes, tag, category, born, gone}, and its ranges.
function barsOfSpan(run, span) {
  const open = new Map(), bars = [], count = span.pattern.codes.length;
  const begin = (i, from) => open.set(i, [...(open.get(i) || []), {...run.pieces[i], from, to: count + 1, born: from > 0, gone: false}]);
  run.aliveAt(span, 0).forEach((alive, i) => { if (alive > 0) begin(i, 0); });
  span.pattern.codes.forEach((code, e) => {
    const i = code >> 2;
    if (!(code & 1)) return begin(i, e + 1);
    const bar = open.get(i)?.pop();
    if (bar) bars.push(Object.assign(bar, {to: e + 1, gone: true}));
  });
  for (const left of open.values()) bars.push(...left);
  return {bars: bars.filter((bar) => bar.bytes > 0 && bar.category !== kReserved), count: count + 1, of: (e) => "event " + e};
}

function barsOfPlan(plan) {
  const bars = plan.buffers.map(([address, bytes, first, last, category]) =>
    ({address, bytes, category, from: first, to: last + 1, born: true, gone: true, tag: plan.steps[first]}));
  return {bars, count: plan.steps.length, of: (s) => (s < plan.steps.length ? `step ${s} (${plan.steps[s].operator})` : "its end")};
}

// Where each address is drawn, from 0 to 1: addresses that no bar uses for a while take no room.
function layout(bars) {
  const ends = bars.map((bar) => [bar.address, bar.address + bar.bytes]).sort((a, b) => a[0] - b[0]);
  const ranges = [];
  for (const [from, to] of ends)
    if (ranges.length && from <= ranges.at(-1).to + 65536) ranges.at(-1).to = Math.max(ranges.at(-1).to, to);
    else ranges.push({from, to});
  const all = ranges.reduce((sum, range) => sum + range.to - range.from, 0) || 1, gap = ranges.length > 1 ? Math.min(0.01, 0.2 / ranges.length) : 0;
  let place = 0;
  for (const range of ranges) {
    range.place = place;
    range.share = (1 - gap * (ranges.length - 1)) * (range.to - range.from) / all;
    place += range.share + gap;
  }
  return (address) => {
    let low = 0, high = ranges.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (ranges[middle].from <= address) low = middle;
      else high = middle - 1;
    }
    const range = ranges[low];
    return range.place + range.share * Math.min(1, (address - range.from) / (range.to - range.from || 1));
  };
}

class Blocks {
  constructor(label) {
    this.canvas = element("canvas", {tabindex: 0, role: "img", "aria-label": label});
    this.detail = element("p", {class: "status", "aria-live": "polite"}, "Point at a block, or focus the picture and press the arrow keys.");
    this.byLayer = false;
    this.node = element("div", {class: "blocks"},
      choice("colours", ["category", "layer"], (i) => { this.byLayer = i === 1; this.draw(); }), this.canvas, this.detail);
    this.canvas.addEventListener("mousemove", (event) => { if (!this.kept) this.choose(this.hit(event)); });
    this.canvas.addEventListener("mouseleave", () => { if (!this.kept) this.choose(null); });
    this.canvas.addEventListener("click", (event) => this.keep(this.hit(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  show({bars, count, of}) {
    Object.assign(this, {count: count || 1, of, chosen: null, kept: false});
    this.bars = bars.sort((a, b) => a.from - b.from || a.address - b.address);
    const place = layout(this.bars);
    for (const bar of this.bars) bar.top = place(bar.address), bar.bottom = place(bar.address + bar.bytes - 1);
    this.draw();
  }

  draw() {
    if (!this.bars) return;
    const ratio = devicePixelRatio, width = this.node.clientWidth, height = Math.min(420, Math.max(160, width / 2));
    Object.assign(this.canvas, {width: width * ratio, height: height * ratio});
    this.canvas.style.height = height + "px";
    const context = this.canvas.getContext("2d");
    const palette = Array.from({length: 7}, (_, c) => categoryColour(c)), edge = style("--page");
    for (const bar of this.bars) {
      const [x, y, w, h] = this.box(bar);
      context.fillStyle = this.byLayer ? textColour(bar.tag.layer) : palette[bar.category];
      context.fillRect(x, y, w, h);
      if (w > 3 && h > 3) {
        context.strokeStyle = edge;
        context.strokeRect(x, y, w, h);
      }
      if (h > 13 * ratio && w > 50 * ratio) {
        context.save();
        context.beginPath();
        context.rect(x, y, w - 2, h);
        context.clip();
        context.font = `${11 * ratio}px system-ui, sans-serif`;
        context.fillStyle = style("--on-colour");
        context.fillText([bar.tag.operator, bar.tag.layer].filter(Boolean).join(" "), x + 4, y + 12 * ratio);
        context.restore();
      }
    }
    if (!this.chosen) return;
    const [x, y, w, h] = this.box(this.chosen);
    context.lineWidth = 2 * ratio;
    context.strokeStyle = style("--text");
    context.strokeRect(x, y, w, h);
  }

  box(bar) {
    const {width, height} = this.canvas;
    return [bar.from / this.count * width, bar.top * height, Math.max(1, (bar.to - bar.from) / this.count * width),
            Math.max(1, (bar.bottom - bar.top) * height)];
  }

  hit(event) {
    const x = event.offsetX * devicePixelRatio, y = event.offsetY * devicePixelRatio;
    return this.bars.findLast((bar) => {
      const [left, top, width, height] = this.box(bar);
      return x >= left && x <= left + width && y >= top && y <= top + height;
    }) || null;
  }

  choose(bar) {
    if (bar === this.chosen) return;
    this.chosen = bar;
    if (bar)
      this.detail.textContent = `${tagText(bar.tag)}: ${bytesText(bar.bytes)} (${exactText(bar.bytes)}), ${words(categories[bar.category])}, ` +
        `from ${bar.born ? this.of(bar.from) : "before"} to ${bar.gone ? this.of(bar.to) : "after the end"}, at 0x${bar.address.toString(16)}`;
    this.draw();
  }

  keep(bar) {
    this.kept = bar !== null && !(this.kept && bar === this.chosen);
    this.choose(bar);
    this.canvas.classList.toggle("kept", this.kept);
  }

  key(event) {
    const at = this.bars.indexOf(this.chosen), by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const vertical = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (by) this.choose(this.bars[Math.min(Math.max(at + by, 0), this.bars.length - 1)] || null);
    else if (vertical && this.chosen) {
      const next = this.bars.filter((bar) => vertical * (bar.top - this.chosen.top) > 0 && bar.from < this.chosen.to && bar.to > this.chosen.from)
        .sort((a, b) => vertical * (a.top - b.top))[0];
      if (next) this.choose(next);
    } else if (event.key === "Enter") this.keep(this.chosen);
    else if (event.key === "Escape") this.kept = false, this.choose(null);
    else return;
    event.preventDefault();
  }
}
