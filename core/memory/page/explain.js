// Who holds the memory of a moment, which ranges it lies in, and what a plan takes.

// Where a holder stands among the others, from the widest name to its own.
const paths = {
  layer: ({tag, category}) =>
    [...(tag.layer || "no layer").split("."), categories[category], tag.operator || "unnamed"],
  line: ({tag, category}) =>
    [lineText(tag) || "no line", tag.operator || "unnamed", categories[category]],
};

class Flame {
  constructor() {
    // The widest box is open: pressed again, it shows all.
    this.boxes = new Boxes("Holders of memory", (box) => {
      this.open(box?.y ? box.names : []);
      this.boxes.choose(this.boxes.boxes[0]);
    });
    this.list = element("div");
    this.node = element("div", {class: "flame"}, choice("by", ["line", "layer"],
      (by) => this.show(this.holders, by)), this.boxes.node, this.list);
  }

  show(holders, by = this.by || "line") {
    this.holders = holders.map((holder) => ({...holder, path: paths[by](holder)}));
    this.by = by;
    this.open([]);
    const rows = sumBy(holders, ({tag}) =>
      (by === "line" ? tagText(tag) : tag.layer || "no layer"));
    this.list.replaceChildren(table([[by, "bytes", "blocks"],
      ...rows.slice(0, 12).map(([text, bytes, blocks]) =>
        [text, bytesText(bytes), String(blocks || "–")])]));
  }

  // Draws the holders whose paths begin with these names, as wide as the picture.
  open(names) {
    const boxes = [], colours = categoryColours(), all = bytesOf(this.holders);
    const add = (holders, names, x, y) => {
      const bytes = bytesOf(holders), found = new Set(holders.map((each) => each.category));
      boxes.push({names, x, y, width: bytes, height: 1, text: names.at(-1) || "all",
        colour: found.size === 1 ? colours[holders[0].category] : style("--mixed"),
        tell: () => `${names.join(" › ") || "all"}: ${bytesText(bytes)} (${exactText(bytes)}), ` +
          percentText(bytes, all)});
      const parts = Map.groupBy(holders, ({path}) => path[names.length]);
      parts.delete(undefined);  // of those whose paths end here
      for (const [name, part] of [...parts].sort(([, a], [, b]) => bytesOf(b) - bytesOf(a))) {
        if (bytesOf(part) > all / 10000) add(part, [...names, name], x, y + 1);
        x += bytesOf(part);
      }
    };
    add(this.holders.filter(({path}) => names.every((name, i) => name === path[i])), names, 0, 0);
    const rows = 1 + largest(boxes.map((box) => box.y));
    this.boxes.show(boxes, boxes[0].width || 1, rows, `${22 * rows}px`);
  }
}

// The mapped ranges of a moment: what lives in each keeps it mapped.
function rangesAt(run, at) {
  const alive = run.aliveAt(at), ranges = [];
  for (const [from, to] of run.mappedAt(at).sort((a, b) => a[0] - b[0]))
    if (ranges.at(-1)?.to === from) ranges.at(-1).to = to;  // pages of one growing range
    else ranges.push({from, to, isKnown: true, live: []});
  const live = run.pieces.filter((piece, i) => alive[i] > 0 && piece.category < kReserved);
  let unknown = null;  // a range from before the recording is known by what lives in it alone
  for (const piece of live.sort((a, b) => a.address - b.address)) {
    let range = ranges.find((each) => each.from <= piece.address && piece.address < each.to);
    if (!range && unknown && piece.address - unknown.to < 2 ** 21) range = unknown;
    if (!range)
      ranges.push(range = unknown = {from: piece.address, to: 0, isKnown: false, live: []});
    range.to = Math.max(range.to, piece.address + piece.bytes);
    range.live.push(piece);
  }
  return ranges.sort((a, b) => b.to - b.from - (a.to - a.from));
}

// A map of the longest ranges, one below the other, and what they are kept mapped by.
class Ranges {
  constructor() {
    this.map = new Boxes("Mapped ranges");
    this.list = element("div");
    this.node = element("div", {}, this.map.node, this.list);
  }

  show(ranges) {
    const boxes = [], colours = categoryColours(), longest = ranges.slice(0, 40);
    const rows = longest.map(({from, to, isKnown, live}, y) => {
      const size = isKnown ? bytesText(to - from) : bytesText(bytesOf(live)) + " or more";
      const add = (at, width, colour, text, told) => boxes.push({x: at - from, y, width,
        height: 0.8, colour, text, tell: () => told});
      add(from, to - from, style("--press"), "", `mapped range: ${size}`);
      for (const {address, bytes, category, tag} of live)
        add(address, bytes, colours[category], tagText(tag), `${tagText(tag)}: ${bytesText(bytes)}`);
      const by = sumBy(live, ({tag}) => tagText(tag)).reverse();
      const few = by.slice(0, 2).map(([text, bytes]) => `${text} (${bytesText(bytes)})`).join(", ");
      return [size, isKnown ? bytesText(to - from - bytesOf(live)) : "–",
              (few || "nothing: cached") + (by.length > 2 ? ` and ${by.length - 2} more` : "")];
    });
    this.map.show(boxes, boxes[0]?.width, rows.length, `${18 * rows.length}px`);
    this.list.replaceChildren(rows.length
      ? table([["size", "free", "kept mapped by (the smallest first)"], ...rows])
      : "No range is known to be mapped.");
  }
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
