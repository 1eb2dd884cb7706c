// Who holds the memory of a moment, which ranges it lies in, and what a plan takes.

// A tree of holders: each level is one word of path(holder).
function tree(holders, path) {
  const root = {name: "all", bytes: 0, children: new Map()};
  for (const holder of holders) {
    let node = root;
    node.bytes += holder.bytes;
    for (const name of path(holder)) {
      if (!node.children.has(name)) node.children.set(name, {name, bytes: 0, parent: node, children: new Map()});
      node = node.children.get(name);
      node.bytes += holder.bytes;
      node.category ??= holder.category;
      if (node.category !== holder.category) node.category = -1;
    }
  }
  return root;
}

const paths = {
  layer: (holder) => [...(holder.tag.layer ? holder.tag.layer.split(".") : ["no layer"]), words(categories[holder.category]), holder.tag.operator || "unnamed"],
  line: (holder) => [lineText(holder.tag) || "no line", holder.tag.operator || "unnamed", words(categories[holder.category])],
};

class Flame {
  constructor() {
    this.svg = element("svg", {role: "tree", "aria-label": "Holders of memory"});
    this.detail = element("p", {class: "status", "aria-live": "polite"});
    this.by = "layer";
    this.list = element("div");
    this.node = element("div", {class: "flame"}, choice("by", ["layer", "line"], (i) => {
      this.by = i ? "line" : "layer";
      this.show(this.holders);
    }), this.svg, this.detail, this.list);
    this.svg.addEventListener("keydown", (event) => this.key(event));
    // A new height alone, as of an opened holder, draws nothing again: the focus stays.
    new ResizeObserver(() => this.holders && this.width !== this.node.clientWidth && this.draw()).observe(this.node);
  }

  show(holders) {
    this.holders = holders;
    this.root = this.top = tree(holders, paths[this.by]);
    this.draw();
    const rows = sumBy(holders, (holder) => (this.by === "layer" ? holder.tag.layer || "no layer" : tagText(holder.tag)));
    this.list.replaceChildren(table([[this.by, "bytes", "blocks"],
      ...rows.slice(0, 12).map(([text, bytes, blocks]) => [text, bytesText(bytes), String(blocks || "–")])]));
  }

  draw() {
    this.width = this.node.clientWidth;
    const width = this.width || 600, height = 22;
    this.boxes = [];
    let depth = 0;
    const place = (node, x, level, share) => {
      const w = share * width;
      if (w < 1) return;
      depth = Math.max(depth, level);
      this.boxes.push({node, x, level, w});
      let left = x;
      for (const child of [...node.children.values()].sort((a, b) => b.bytes - a.bytes)) {
        const part = share * child.bytes / (node.bytes || 1);
        place(child, left, level + 1, part);
        left += part * width;
      }
    };
    place(this.top, 0, 0, 1);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${(depth + 1) * height}`);
    this.svg.style.height = (depth + 1) * height + "px";
    this.svg.replaceChildren(...this.boxes.map((box) => this.box(box, height)));
  }

  box({node, x, level, w}, height) {
    const fill = node.category >= 0 ? `var(--category-${node.category})` : "var(--mixed)";
    const text = w > 40 ? element("text", {x: x + 4, y: level * height + 15}, node.name.slice(0, Math.floor(w / 7))) : "";
    const box = element("g", {tabindex: level ? -1 : 0, role: "treeitem", onclick: () => this.open(node),
      onmousemove: () => this.tell(node), onfocus: () => this.tell(node)},
      element("rect", {x, y: level * height, width: Math.max(w - 1, 0.5), height: height - 1, style: `fill: ${fill}`}), text);
    node.box = box;
    return box;
  }

  tell(node) {
    const share = (100 * node.bytes / (this.root.bytes || 1)).toFixed(1);
    const names = [];
    for (let at = node; at.parent; at = at.parent) names.unshift(at.name);
    this.detail.textContent = `${names.join(" › ") || "all"}: ${bytesText(node.bytes)} (${exactText(node.bytes)}), ${share} %`;
  }

  open(node) {
    this.top = node === this.top ? this.root : node;
    this.draw();
    this.tell(node);
  }

  key(event) {
    const at = this.boxes.find((box) => box.node.box === document.activeElement);
    if (!at) return;
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const level = this.boxes.filter((box) => box.level === at.level);
    const next = by ? level[level.indexOf(at) + by] : event.key === "ArrowUp" ? {node: at.node.parent}
      : event.key === "ArrowDown" ? this.boxes.find((box) => box.node.parent === at.node) : null;
    if (event.key === "Enter") this.open(at.node), this.boxes.find((box) => box.node === at.node)?.node.box.focus();
    else if (next?.node?.box) next.node.box.focus();
    else if (event.key !== "Escape") return;
    else this.open(this.top), this.root.box.focus();
    event.preventDefault();
  }
}

// The mapped ranges of a moment: what lives in each keeps it mapped.
function rangesAt(run, span, events) {
  const alive = run.aliveAt(span, events);
  const live = run.pieces.filter((piece, i) => alive[i] > 0 && piece.bytes && piece.category !== kReserved);
  // Ranges from before the recording are known by what lives in them alone.
  const ranges = run.mappedAt(span, events).map(([from, to]) => ({from, to, isKnown: true, live: []}));
  ranges.sort((a, b) => a.from - b.from);
  for (let i = 1; i < ranges.length;)  // pages of one growing range
    if (ranges[i].from === ranges[i - 1].to) ranges[i - 1].to = ranges[i].to, ranges.splice(i, 1);
    else ++i;
  for (const piece of live.sort((a, b) => a.address - b.address)) {
    let range = ranges.find((each) => each.from <= piece.address && piece.address < each.to);
    if (!range) {
      const last = ranges.filter((each) => !each.isKnown).at(-1);
      if (last && piece.address - last.to < 2 ** 21) range = last;
      else ranges.push(range = {from: piece.address, to: 0, isKnown: false, live: []});
      range.to = Math.max(range.to, piece.address + piece.bytes);
    }
    range.live.push(piece);
  }
  return ranges.sort((a, b) => b.to - b.from - (a.to - a.from));
}

function rangesNode(run, span, events) {
  const ranges = rangesAt(run, span, events), most = ranges.length ? ranges[0].to - ranges[0].from : 1;
  const rows = ranges.slice(0, 40).map((range) => {
    const size = range.to - range.from, used = range.live.reduce((sum, piece) => sum + piece.bytes, 0);
    // Of the pieces that are narrower than a thousandth of the longest range, one for each.
    const column = (piece) => Math.floor(1000 * (piece.address - range.from) / most);
    const shown = range.live.filter((piece, i, all) => !i || 1000 * piece.bytes >= most || column(piece) > column(all[i - 1]));
    const bar = element("svg", {class: "range", viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img",
      "aria-label": `${bytesText(used)} of ${bytesText(size)} in use`},
      element("rect", {width: 1000 * size / most, height: 10, class: "free"}),
      ...shown.map((piece) => element("rect", {x: 1000 * (piece.address - range.from) / most, height: 10,
        width: Math.max(1, 1000 * piece.bytes / most), style: `fill: var(--category-${piece.category})`},
        element("title", {}, tagText(piece.tag) + ": " + bytesText(piece.bytes)))));
    const by = sumBy(range.live.map((piece) => ({tag: piece.tag, bytes: piece.bytes, blocks: 1})), (holder) => tagText(holder.tag));
    const more = by.length > 2 ? ` and ${by.length - 2} more` : "";
    return [bar, bytesText(size) + (range.isKnown ? "" : " or more"), range.isKnown ? bytesText(size - used) : "–",
            by.length ? by.slice(-2).reverse().map(([text, bytes]) => `${text} (${bytesText(bytes)})`).join(", ") + more : "nothing: cached"];
  });
  if (!rows.length) return element("p", {class: "note"}, run.rowAt(span, events)[kReserved] > 0 ? "Which ranges are mapped is not known." : "No range is mapped.");
  return table([["range", "size", "free", "kept mapped by (the smallest first)"], ...rows]);
}

// What a plan takes, and where its arena is above the most bytes alive at once.
function planNode({peak_bytes, lower_bound_bytes, text, buffers, steps}) {
  const above = peak_bytes - lower_bound_bytes;
  let why = above ? `The plan takes ${bytesText(above)} more than its bound.`
    : "The plan takes what is alive at its peak, and no byte more.";
  if (above && buffers.length) {
    const [, , first] = buffers.reduce((a, b) => (b[0] + b[1] > a[0] + a[1] ? b : a));
    why += ` The arena ends with a buffer of step ${first} (${steps[first].operator}); below it ` +
      "are holes between buffers whose lives differ.";
  }
  return element("div", {}, element("p", {}, why), element("pre", {class: "scrolls"}, text));
}
