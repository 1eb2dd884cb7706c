// The charts over the steps: one for each run, of the same height and range.

// Lines beside the allocated bytes: name, colour, dashes, value(run, row).
const kLines = [["reserved", "--reserved", [], (_, row) => row[kReserved]],
                ["predicted peak", "--predicted", [6, 4], (run) => run.predicted_peak_bytes],
                ["plan", "--plan", [2, 3], (run) => run.arenaPlan()?.peak_bytes],
                ["limit", "--limit", [10, 4], () => report.limit_bytes]];

class Timelines {
  // pick(run, {span, events}) shows the moment that is clicked, or that the keys go to.
  constructor(parent, runs, pick) {
    Object.assign(this, {pick, charts: [], showsReserved: true});
    this.measure(runs);
    this.range = this.whole;
    this.status = element("p", {class: "status", "aria-live": "polite"});
    this.node = element("div", {class: "timelines"}, this.legend(), this.status);
    parent.append(this.node);  // which gives charts their width
    for (const run of runs) this.add(run, runs.length > 3 ? 150 : 200);
  }

  measure(runs) {
    this.runs = runs;
    this.whole = [0, largest(runs.map((run) => run.spans.at(-1).x1))];
    this.most = largest(runs.flatMap((run) => [1, run.peak.allocated, run.predicted_peak_bytes,
      ...(this.showsReserved ? run.spans.map((span) => span.peak[kReserved]) : [])]));
  }

  // Newer data of the same runs. Who sees the whole run goes on to see all of it.
  update(runs) {
    const seesAll = this.range[1] === this.whole[1];
    this.measure(runs);
    this.charts.forEach((chart, i) => Object.assign(chart, {run: runs[i], at: null}));
    this.show(this.range[0], seesAll ? this.whole[1] : this.range[1]);
  }

  legend() {
    const lines = kLines.filter(([, , , value]) =>
      this.runs.some((run) => value(run, run.peak.span.peak)));
    const toggle = (event) => {  // a small model is flat below the reserved bytes
      this.showsReserved = event.target.checked;
      this.measure(this.runs);
      this.show(...this.range);
    };
    return element("div", {class: "legend"},
      ...categories.map((name, c) =>
        legendEntry("swatch", `background: var(--category-${c})`, name)),
      ...lines.map(([name, colour]) => legendEntry("line", `border-color: var(${colour})`, name)),
      element("label", {}, element("input", {type: "checkbox", checked: true, onchange: toggle}),
        "show reserved"),
      element("button", {onclick: () => this.show(this.at.span.x0, this.at.span.x1)}, "one step"),
      element("button", {onclick: () => this.show(...this.whole)}, "whole run"));
  }

  add(run, height) {
    const holder = element("div", {class: "chart", tabindex: 0, role: "img",
      "aria-label": `${run.name}: bytes over the steps`,
      onkeydown: (event) => this.key(chart, event)});
    this.node.append(element("details", {open: true}, element("summary", {}, run.name + " ",
      element("span", {class: "note"}, `peak ${bytesText(run.peak.allocated)}`)), holder));
    const chart = {run, at: null, x: null}, colours = categoryColours().reverse();
    const momentAt = (plot) => chart.run.momentAt(plot.posToVal(plot.cursor.left, "x"));
    const line = element("i", {class: "moment"});
    chart.plot = bytesChart(holder, height, this.data(run), {
      series: [{}, ...colours.map((fill) => ({fill, width: 0})),
               ...kLines.map(([, colour, dash]) => ({stroke: style(colour), dash}))],
      axes: [{}, this.markAxis(chart)], legend: {show: false}, padding: [0, 40, 0, 0],
      drawOrder: ["series", "axes"],
      scales: {x: {time: false, range: () => this.range}, y: {range: () => [0, this.most * 1.05]}},
      cursor: {sync: {key: "runs"}, drag: {setScale: false}, points: {show: false}},
      hooks: {
        draw: [(plot) => { line.style.left = plot.valToPos(chart.x ?? -1, "x") + "px"; }],
        setSelect: [(plot) => plot.select.width > 3 && this.select(plot)],
        setCursor: [(plot) => plot.cursor.event && plot.cursor.left >= 0 &&
          (this.status.textContent = momentText(chart.run, momentAt(plot)))],
      },
    });
    const {over} = chart.plot;
    over.append(line);
    over.addEventListener("click", () => this.pick(chart.run, momentAt(chart.plot)));
    over.addEventListener("dblclick", () => this.show(...this.whole));
    this.charts.push(chart);
  }

  // Marks of a run stand above its chart: lines where there is room, and names where there is more.
  markAxis(chart) {
    let marks = [];
    const apart = (half) => (plot, places) => {
      let end = -Infinity;
      return places.map((x, i) => {
        const at = plot.valToPos(x, "x");
        if (at - half(i) < end) return null;
        end = at + half(i);
        return x;
      });
    };
    return {
      scale: "x", side: 0, size: 20, font: "11px system-ui, sans-serif", ticks: {show: false},
      stroke: style("--quiet"), grid: {stroke: style("--mark"), width: 1, filter: apart(() => 2)},
      splits: (_, axis, from, to) => {
        marks = chart.run.marks().filter(([, {x1}]) => from <= x1 && x1 <= to);
        return marks.map(([, {x1}]) => x1);
      },
      filter: apart((i) => 4 + 3 * marks[i][0].length),
      values: (_, places) => places.map((x, i) => (x === null ? "" : marks[i][0])),
    };
  }

  data(run) {
    const points = run.points(...this.range, 1200), columns = [points.map(([x]) => x)];
    for (let c = kCategories; c > 0; --c)  // stacked: each up to a category
      columns.push(points.map(([, row]) => Math.max(0, allocatedOf(row, c))));
    for (const [, , , value] of kLines)
      columns.push(points.map(([, row]) => value(run, row) || null));
    if (!this.showsReserved) columns[kCategories + 1].fill(null);
    return columns;
  }

  select(plot) {
    const {left, width} = plot.select;
    plot.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
    this.show(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
  }

  show(from, to) {
    const [begin, end] = this.whole, width = Math.min(Math.max(to - from, 0.02), end - begin);
    const first = Math.min(Math.max((from + to - width) / 2, begin), end - width);
    this.range = [first, first + width];
    for (const chart of this.charts) chart.plot.setData(this.data(chart.run));
  }

  // Draws a line at the moment that is shown below.
  mark(run, at) {
    const x = run.placeOf(at), [from, to] = this.range;
    const move = from <= x && x <= to ? 0 : x - (from + to) / 2;
    this.at = at;
    for (const chart of this.charts)
      Object.assign(chart, chart.run === run ? {at, x} : {at: null, x: null});
    this.status.textContent = momentText(run, at);
    this.show(from + move, to + move);
  }

  key(chart, event) {
    const {run} = chart, {span, events} = chart.at || run.shown, {codes} = span.pattern;
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (by && event.shiftKey) {
      let next = events + by;
      while (next > 0 && codes[next - 1] & 2) next += by;  // within one moment
      this.pick(run, {span, events: Math.min(Math.max(next, 0), codes.length)});
    } else {
      const next = by ? run.spans[span.index + by]
        : {Home: run.spans[0], End: run.spans.at(-1)}[event.key];
      if (!next) return;
      this.pick(run, {span: next, events: 0});
    }
    event.preventDefault();
  }
}

function spanText({name, step, steps}) {
  if (name) return `before "${name}"` + (step ? `, after step ${step - 1}` : "");
  if (steps > 1) return `steps ${step} to ${step + steps - 1}`;
  return steps ? `step ${step}` : "older events";
}

function momentText(run, at) {
  const {span, events} = at, row = run.rowAt(at), allocated = allocatedOf(row);
  const parts = categories.map((name, c) => row[c] > 0 && `${name} ${bytesText(row[c])}`)
    .filter(Boolean);
  return `${run.name}, ${spanText(span)}, after event ${events} of ${span.pattern.codes.length}: ` +
    `${bytesText(allocated)} allocated (${parts.join(", ") || "nothing"}), ` +
    `${bytesText(row[kReserved])} reserved, ${percentText(allocated, run.peak.allocated)} of the ` +
    `run's peak, at ${(span.time / 1e6).toFixed(1)} ms` + (run.isKnown(span) ? "" : ". So it " +
      `began: its events were left out. It held at most ${bytesText(allocatedOf(span.peak))}.`);
}
