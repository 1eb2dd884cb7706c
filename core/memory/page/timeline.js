// The charts over the steps: one for each run, of the same width and range.

const kLines = [["reserved", "--reserved", []], ["predicted peak", "--predicted", [6, 4]],
                ["plan", "--plan", [2, 3]], ["limit", "--limit", [10, 4]]];

class Timelines {
  // pick(run, span, events) is called where a chart is clicked, or Enter pressed.
  constructor(runs, limit, categories, pick) {
    Object.assign(this, {limit, categories, pick, charts: [], showsReserved: true});
    this.measure(runs);
    this.range = [...this.whole];
    this.status = element("p", {class: "status", "aria-live": "polite"}, "Point at a chart, or focus it and press the arrow keys.");
    this.node = element("div", {class: "timelines"}, this.legend(), this.status);
    for (const run of runs) this.add(run);
  }

  measure(runs) {
    this.runs = runs;
    this.whole = [Math.min(...runs.map((run) => run.spans[0].x0)), Math.max(...runs.map((run) => run.spans.at(-1).x1))];
    this.most = runs.reduce((most, run) => run.spans.reduce((top, span) => Math.max(top, this.showsReserved ? span.peak[kReserved] : 0),
      Math.max(most, run.peak.allocated, run.predicted)), 1);
  }

  // Newer data of the same runs. Who sees the whole run goes on to see all of it.
  update(runs) {
    const seesAll = this.range[1] === this.whole[1];
    this.measure(runs);
    this.charts.forEach((chart, i) => Object.assign(chart, {run: runs[i], at: null}));
    this.show(this.range[0], seesAll ? this.whole[1] : this.range[1]);
  }

  legend() {
    const entries = this.categories.map((name, i) => element("span", {}, element("i", {class: "swatch", style: `background: var(--category-${i})`}), name));
    const drawn = {limit: !!this.limit, plan: this.runs.some((run) => run.arenaPlan()), "predicted peak": this.runs.some((run) => run.predicted)};
    const toggle = (event) => {  // a small model is flat below the reserved bytes
      this.showsReserved = event.target.checked;
      this.measure(this.runs);
      this.show(...this.range);
    };
    for (const [name, colour] of kLines)
      if (drawn[name] !== false)
        entries.push(element(name === "reserved" ? "label" : "span", {},
          name === "reserved" ? element("input", {type: "checkbox", checked: true, onchange: toggle}) : "", element("i", {class: "line", style: `border-color: var(${colour})`}), name));
    // Touch screens have neither drag nor keys: these go to the moment that was touched last.
    const zoom = (factor) => {
      const middle = (this.range[0] + this.range[1]) / 2, line = this.charts.find((chart) => chart.line !== null)?.line ?? middle;
      const width = (this.range[1] - this.range[0]) * factor;
      this.show(line - width / 2, line + width / 2);
    };
    return element("div", {class: "legend"}, ...entries,
      element("button", {type: "button", "aria-label": "zoom in", onclick: () => zoom(1 / 2)}, "+"),
      element("button", {type: "button", "aria-label": "zoom out", onclick: () => zoom(2)}, "−"),
      element("button", {type: "button", class: "whole", onclick: () => this.show(...this.whole)}, "whole run"));
  }

  add(run) {
    const holder = element("div", {class: "chart", tabindex: 0, role: "img", "aria-label": `${run.name}: bytes over the steps`});
    const box = element("label", {class: "run"}, element("input", {type: "checkbox", checked: true,
      onchange: (event) => { holder.hidden = !event.target.checked; }}), " " + run.name,
      element("span", {class: "quiet"}, ` peak ${bytesText(run.peak.allocated)}`));
    this.node.append(box, holder);
    const chart = {run, holder, at: null, line: null};
    this.charts.push(chart);
    holder.addEventListener("keydown", (event) => this.key(chart, event));
  }

  // Once the page has its width.
  draw() {
    for (const chart of this.charts) this.make(chart);
    new ResizeObserver(() => this.charts.forEach((chart) => chart.plot.setSize(this.size(chart)))).observe(this.node);
  }

  size(chart) { return {width: Math.max(this.node.clientWidth, 200), height: this.charts.length > 3 ? 150 : 200}; }

  make(chart) {
    const axis = {stroke: style("--text"), grid: {stroke: style("--grid"), width: 1}, ticks: {stroke: style("--grid")}};
    const powers = Array.from({length: 50}, (_, i) => 2 ** i);
    const series = [{label: "step"}], colours = categoryColours();
    for (let c = kCategories - 1; c >= 0; --c)
      series.push({label: this.categories[c], fill: colours[c], width: 0, points: {show: false}, paths: uPlot.paths.stepped({align: 1})});
    for (const [label, colour, dash] of kLines)
      series.push({label, stroke: style(colour), dash, width: 1.5, points: {show: false}, paths: uPlot.paths.stepped({align: 1})});
    chart.plot?.destroy();
    chart.plot = new uPlot({
      ...this.size(chart), series, legend: {show: false}, padding: [12, 26, 0, 0],
      scales: {x: {time: false, range: () => this.range}, y: {range: () => [0, this.most * 1.22]}},
      axes: [{...axis, values: (_, splits) => splits.map((x) => (x < 0 ? "" : Number.isInteger(x) ? x : splits.some(Number.isInteger) ? "" : x.toFixed(2)))},
             {...axis, size: 72, space: 22, incrs: powers, values: (_, splits) => splits.map(bytesText)}],
      cursor: {sync: {key: "runs"}, drag: {x: true, y: false, setScale: false}, points: {show: false}},
      hooks: {
        draw: [(plot) => this.drawMarks(chart, plot)],
        setSelect: [(plot) => plot.select.width > 3 && this.select(plot)],
        setCursor: [(plot) => plot.cursor.event && plot.cursor.left >= 0 && this.point(chart, plot.posToVal(plot.cursor.left, "x"))],
      },
    }, this.data(chart), chart.holder);
    chart.plot.over.addEventListener("click", () => this.enter(chart));
    chart.plot.over.addEventListener("dblclick", () => this.show(...this.whole));
    chart.plot.over.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;  // a wheel alone scrolls the page
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, chart.plot.posToVal(event.offsetX, "x"));
    }, {passive: false});
  }

  data(chart) {
    const points = chart.run.points(this.range[0], this.range[1], 1200);
    if (!points.length) points.push([this.range[0], new Array(8).fill(0)]);
    const columns = [points.map(([x]) => x)];
    for (let c = kCategories - 1; c >= 0; --c)
      columns.push(points.map(([, row]) => Math.max(0, allocatedOf(row.map((bytes, i) => (i <= c ? bytes : 0))))));
    const flat = (bytes) => points.map(() => bytes || null);
    columns.push(points.map(([, row]) => (this.showsReserved ? row[kReserved] : null)), flat(chart.run.predicted), flat(chart.run.arenaPlan()?.peak_bytes), flat(this.limit));
    return columns;
  }

  select(plot) {
    const from = plot.posToVal(plot.select.left, "x"), to = plot.posToVal(plot.select.left + plot.select.width, "x");
    plot.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
    this.dragged = performance.now();
    this.show(from, to);
  }

  show(from, to) {
    const least = 0.02, middle = (from + to) / 2, width = Math.min(Math.max(to - from, least), this.whole[1] - this.whole[0]);
    from = Math.min(Math.max(middle - width / 2, this.whole[0]), this.whole[1] - width);
    this.range = [from, from + width];
    for (const chart of this.charts) if (chart.plot) chart.plot.setData(this.data(chart));
  }

  zoom(factor, around) {
    const [from, to] = this.range;
    this.show(around - (around - from) * factor, around + (to - around) * factor);
  }

  drawMarks(chart, plot) {
    const context = plot.ctx, {left, top, width, height} = plot.bbox;
    context.save();
    context.fillStyle = style("--mark");
    context.textAlign = "left";
    context.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    let free = left;
    const marks = chart.run.spans.filter((span) => span.name).map((span) => [span.x1, span.name]);
    const first = chart.run.spans.find((span) => span.steps);
    if (first) marks.push([first.step + 1, "first step"]);
    for (const [at, name] of marks.sort(([a], [b]) => a - b)) {
      if (at < this.range[0] || at > this.range[1]) continue;
      const x = plot.valToPos(at, "x", true);
      if (x < free - 1) continue;
      context.globalAlpha = 0.5;
      context.fillRect(x - 0.5, top, 1, height);
      context.globalAlpha = 1;
      const text = context.measureText(name).width;
      const begin = Math.min(x + 3, left + width - text);
      free = x + 4;
      if (begin < (this.labelled?.plot === plot ? this.labelled.until : left)) continue;
      context.fillText(name, begin, top + 10 * devicePixelRatio);
      this.labelled = {plot, until: begin + text + 8};
    }
    this.labelled = null;
    if (chart.line !== null) {
      context.fillStyle = style("--text");
      context.fillRect(plot.valToPos(chart.line, "x", true) - 0.5, top, 1, height);
    }
    context.restore();
  }

  point(chart, x) {
    if (!chart.run.spans.length) return;
    const moment = chart.run.momentAt(x), row = chart.run.rowAt(moment);
    chart.at = {...moment, x};
    this.status.textContent = `${chart.run.name}, ${spanText(moment.span)}: ${bytesText(allocatedOf(row))} allocated (` +
      (this.categories.map((name, c) => [name, row[c]]).filter(([, bytes]) => bytes > 0)
        .map(([name, bytes]) => `${name} ${bytesText(bytes)}`).join(", ") || "nothing") +
      `), ${bytesText(row[kReserved])} reserved, at ${timeText(moment.span.time)}` +
      (moment.span.pattern.isWhole ? "" : `. At most ${bytesText(allocatedOf(moment.span.peak))} in this span, whose events are not all known`);
  }

  // Draws a line at the moment that is shown below.
  mark(run, span, events) {
    for (const chart of this.charts) {
      chart.line = chart.run === run ? run.placeOf({span, events}) : null;
      chart.plot.redraw(false);
    }
  }

  enter(chart) {
    if (performance.now() - (this.dragged || -1e9) < 300 || !chart.at) return;
    this.pick(chart.run, chart.at.span, chart.at.events);
  }

  key(chart, event) {
    const run = chart.run;
    if (!run.spans.length) return;
    const at = chart.at || {...run.peak, x: (run.peak.span.x0 + run.peak.span.x1) / 2};
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const go = (span, events) => {
      const x = run.placeOf({span, events});
      this.point(chart, x);
      chart.line = x;
      if (x < this.range[0] || x > this.range[1]) this.show(x - (this.range[1] - this.range[0]) / 2, x + (this.range[1] - this.range[0]) / 2);
      chart.plot.redraw(false);
    };
    if (by && event.shiftKey) {
      const codes = at.span.pattern.codes;
      let events = at.events + by;
      while (events > 0 && codes[events - 1] & 2) events += by;  // within one moment
      go(at.span, Math.min(Math.max(events, 0), codes.length));
    }
    else if (by) go(run.spans[Math.min(Math.max(at.span.index + by, 0), run.spans.length - 1)], 0);
    else if (event.key === "Home") go(run.spans[0], 0);
    else if (event.key === "End") go(run.spans.at(-1), 0);
    else if (event.key === "p") go(run.peak.span, run.peak.events);
    else if (event.key === "+" || event.key === "=") this.zoom(1 / 2, at.x);
    else if (event.key === "-") this.zoom(2, at.x);
    else if (event.key === "0") this.show(...this.whole);
    else if (event.key === "Enter") chart.at ? this.enter(chart) : this.pick(run, run.shown.span, run.shown.events);
    else return;
    event.preventDefault();
  }
}

function momentText(run, span, events) {
  const text = `${run.name}, ${spanText(span)}`, top = bytesText(allocatedOf(span.peak)), peak = bytesText(run.peak.allocated);
  if (!run.isKnown(span)) return `${text}, at its beginning: events of it were left out, so later blocks are not known. It held at most ${top}.`;
  if (events !== span.pattern.peak_events) return `${text}, after event ${events} of ${span.pattern.codes.length}`;
  const isPeak = run.peak.allocated === allocatedOf(span.peak);
  return `${text}, at its peak` + (run.shown.span === span && !isPeak ? `: ${top}, the most whose blocks are known. The run's peak of ${peak} is ${spanText(run.peak.span)}.` : "");
}

function spanText(span) {
  if (span.name) return `before "${span.name}"` + (span.step ? `, after step ${span.step - 1}` : "");
  return span.steps > 1 ? `steps ${span.step} to ${span.step + span.steps - 1}` : span.steps ? `step ${span.step}` : "older events";
}
