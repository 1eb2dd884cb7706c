// Boxes on a canvas that tell what they are, and blocks of memory drawn by them.

class Boxes {
  // A click or Enter calls press(box), Escape press(null); if it is left out, they keep a box.
  constructor(label, press) {
    const keep = (box) => this.choose(box, box !== null && !(this.kept && box === this.chosen));
    const point = (box) => { if (!this.kept && box !== this.chosen) this.choose(box); };
    this.press = press || keep;
    this.canvas = element("canvas", {
      tabindex: 0, role: "img", "aria-label": label, onkeydown: (event) => this.key(event),
      onmousemove: (event) => point(this.hit(event)), onmouseleave: () => point(null),
      onclick: (event) => this.press(this.hit(event))});
    this.status = element("p", {class: "status", "aria-live": "polite"});
    this.node = element("div", {}, this.canvas, this.status);
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  // Boxes are {x, y, width, height, colour, text, tell()}, in units of a picture of that size.
  show(boxes, width, height, cssHeight) {
    Object.assign(this, {boxes, width, height});
    this.canvas.style.height = cssHeight;
    this.status.textContent = "Point at a box, or focus the picture and press the arrow keys.";
    this.choose(null);
  }

  place(box) {
    const {clientWidth, clientHeight} = this.canvas;
    const across = clientWidth / this.width, down = clientHeight / this.height;
    return [box.x * across, box.y * down,
            Math.max(1, box.width * across), Math.max(1, box.height * down)];
  }

  draw() {
    if (!this.boxes) return;
    const {canvas} = this, context = canvas.getContext("2d"), ratio = devicePixelRatio;
    Object.assign(canvas, {width: canvas.clientWidth * ratio, height: canvas.clientHeight * ratio});
    context.scale(ratio, ratio);
    context.font = "11px system-ui, sans-serif";
    const edge = style("--page"), onColour = style("--on-colour");
    for (const box of this.boxes) {
      const [x, y, width, height] = this.place(box);
      context.fillStyle = box.colour;
      context.fillRect(x, y, width, height);
      context.strokeStyle = edge;
      if (width > 3 && height > 3) context.strokeRect(x, y, width, height);
      context.fillStyle = onColour;
      const middle = y + Math.min(height, 22) / 2 + 4;
      if (width > 40 && height > 13) context.fillText(box.text.slice(0, width / 7), x + 4, middle);
    }
    if (!this.chosen) return;
    context.lineWidth = 2;
    context.strokeStyle = style("--text");
    context.strokeRect(...this.place(this.chosen));
  }

  hit({offsetX, offsetY}) {
    return this.boxes.findLast((box) => {
      const [x, y, width, height] = this.place(box);
      return offsetX >= x && offsetX <= x + width && offsetY >= y && offsetY <= y + height;
    }) || null;
  }

  choose(box, kept = false) {
    Object.assign(this, {chosen: box, kept});
    if (box) this.status.textContent = box.tell();
    this.canvas.classList.toggle("kept", kept);
    this.draw();
  }

  // Left and right go in the order of the boxes, up and down to the next one there.
  key(event) {
    const {boxes, chosen} = this, by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const down = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (by || down && !chosen) this.choose(boxes[boxes.indexOf(chosen) + (by || 1)] || chosen);
    else if (down)
      this.choose(boxes.filter((box) => down * (box.y - chosen.y) > 0 &&
          box.x < chosen.x + chosen.width && chosen.x < box.x + box.width)
        .sort((a, b) => down * (a.y - b.y))[0] || chosen);
    else if (event.key === "Enter") this.press(chosen);
    else if (event.key === "Escape") this.press(null);
    else return;
    event.preventDefault();
  }
}

// Bars of the blocks of a span, over the moments before its first event and after each: {from, to,
// address, bytes, tag, category}. tellAt(moment) is text.
function barsOfSpan(run, span) {
  const {codes} = span.pattern, count = codes.length + 1, bars = [], open = [];
  const begin = (i, from) => bars.push(open[i] = {...run.pieces[i], from, to: count});
  run.aliveAt({span, events: 0}).forEach((alive, i) => { if (alive > 0) begin(i, 0); });
  codes.forEach((code, e) => {
    if (!(code & 1)) begin(code >> 2, e + 1);
    else if (open[code >> 2]) open[code >> 2].to = e + 1;
  });
  return {bars: bars.filter((bar) => bar.bytes > 0 && bar.category !== kReserved), count,
          tellAt: (e) => (e === 0 ? "before" : e === count ? "after the end" : "event " + e)};
}

// Bars of the buffers of a plan, over its steps.
function barsOfPlan(plan) {
  const bars = plan.buffers.map(([address, bytes, first, last, category]) =>
    ({address, bytes, category, from: first, to: last + 1, tag: plan.steps[first]}));
  return {bars, count: plan.steps.length,
          tellAt: (s) => (plan.steps[s] ? `step ${s} (${plan.steps[s].operator})` : "its end")};
}

// Bars from left to right, and from top to bottom the addresses, without those that no bar uses.
class Blocks {
  constructor(label) {
    this.boxes = new Boxes(label);
    this.legend = element("div", {class: "legend"});
    this.node = element("div", {class: "blocks"}, choice("colours", ["category", "layer"],
      (by) => this.show(this.shown, by)), this.legend, this.boxes.node);
  }

  show(shown, by = this.by) {
    Object.assign(this, {shown, by});
    const {bars, count, tellAt} = shown;
    const keyOf = (bar) => (by === "layer" ? bar.tag.layer || "no layer" : categories[bar.category]);
    const largestFirst = sumBy(bars.map((bar) => ({...bar, blocks: 1})), keyOf).map(([key]) => key);
    const colours = by === "layer" ? coloursOf(largestFirst)
      : new Map(categoryColours().map((colour, c) => [categories[c], colour]));
    this.legend.replaceChildren(...largestFirst.slice(0, 12).map((key) =>
      legendEntry("swatch", `background: ${colours.get(key)}`, key)));
    let end = 0, unused = 0;
    for (const bar of bars.sort((a, b) => a.address - b.address)) {
      unused += Math.max(0, bar.address - end);
      end = Math.max(end, bar.address + bar.bytes);
      bar.y = bar.address - unused;
    }
    const boxes = bars.sort((a, b) => a.from - b.from || a.y - b.y).map((bar) => ({
      x: bar.from, y: bar.y, width: bar.to - bar.from, height: bar.bytes,
      colour: colours.get(keyOf(bar)),
      text: `${bar.tag.operator} ${bar.tag.layer}`,
      tell: () => `${tagText(bar.tag)}: ${bytesText(bar.bytes)} (${exactText(bar.bytes)}), ` +
        `${categories[bar.category]}, from ${tellAt(bar.from)} to ${tellAt(bar.to)}, ` +
        `at 0x${bar.address.toString(16)}`}));
    this.boxes.show(boxes, count, end - unused, "clamp(160px, 50vw, 420px)");
  }
}
