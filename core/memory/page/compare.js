// Runs beside each other: their figures, the curves of a step, and two moments.

// The most in a step, and what is held when the last one has ended.
function stepFigures(run) {
  const steps = run.spans.filter((span) => span.steps), last = steps.at(-1);
  if (!last) return {};
  const after = run.spans[last.index + 1];
  return {peak: largest(steps.map((span) => allocatedOf(span.peak))),
          held: allocatedOf(after ? after.start : run.end)};
}

// "graph, 4 micro-batches" is compared with "graph", other runs with the first.
function baseOf(runs, run) {
  return runs.find((each) => run.name.startsWith(each.name + ", ")) || runs[0];
}

function figuresNode(runs) {
  const text = (bytes) => (bytes === undefined ? "–" : bytesText(bytes));
  const rows = runs.map((run) => {
    const {peak, held} = stepFigures(run), base = baseOf(runs, run), most = stepFigures(base).peak;
    const change = run === base || !peak || !most ? "–"
      : `${peak > most ? "+" : ""}${percentText(peak - most, most)} (${base.name})`;
    return [run.name, text(run.predicted_peak_bytes || undefined), text(run.peak.allocated),
            text(peak), change, text(held), text(allocatedOf(run.end))];
  });
  return table([["", "peak predicted", "peak", "peak in a step", "change",
                 "held between steps", "at the end"], ...rows]);
}

// Bytes over the last of the highest steps that are wholly known: those in use, so without the
// unused part of an arena.
function stepCurve(run) {
  const span = run.spans.filter(({steps, pattern}) => steps === 1 && pattern.isWhole)
    .reduce((a, b) => (a && allocatedOf(a.peak) > allocatedOf(b.peak) ? a : b), null);
  if (!span) return [];
  const plan = run.arenaPlan(), besides = allocatedOf(span.start) - plan?.arena_bytes;
  if (run.plans.length === 1 && plan)
    return aliveBySteps(plan).map((bytes, s, {length}) => [s / length, besides + bytes]);
  const points = run.points(span.x0, span.x1 - 1e-9, 2000);
  return points.map(([x, row]) => [(x - span.x0) / (span.x1 - span.x0), allocatedOf(row)]);
}

// The curves of a step of each run.
function addCurves(parent, runs) {
  const key = (event) => {  // moves the cursor from one value to the next
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key], {data: [places], cursor} = plot;
    if (!by) return;
    const next = Math.min(Math.max((cursor.idx ?? -1) + by, 0), places.length - 1);
    plot.setCursor({left: plot.valToPos(places[next], "x"), top: 0});
    event.preventDefault();
  };
  const holder = element("div", {class: "chart", tabindex: 0, role: "img",
    "aria-label": "bytes over one step", onkeydown: key});
  parent.append(holder);
  const curves = runs.map(stepCurve), percent = (x) => Math.round(100 * x) + " %";
  const colours = coloursOf(runs);
  const data = curves.map((curve) => [curve.map(([x]) => x), curve.map(([, bytes]) => bytes)]);
  const plot = bytesChart(holder, 220, uPlot.join(data), {
    series: [{label: "part of the step", value: (_, x) => (x === null ? "–" : percent(x))},
      ...runs.map((run, i) => ({
        label: run.name, width: 2, spanGaps: true, dash: i % 2 ? [6, 3] : [],
        stroke: colours.get(run),
        value: (_, bytes) => (bytes === null ? "–" : bytesText(bytes))}))],
    axes: [{values: (_, at) => at.map(percent)}], cursor: {points: {show: false}},
    scales: {x: {time: false, range: [0, 1]}, y: {range: (_, low, high) => [0, high * 1.05]}},
  });
}

// Moments that a run can be compared at: its start, each mark by its last time, the last step and
// at last the peak.
function namedMoments(run) {
  const ends = new Map(run.marks()), last = run.spans.findLast((span) => span.steps);
  if (last) ends.set("last step", last);
  const after = (span) => {
    const next = run.spans[span.index + 1];  // begins there, and its own events may be missing
    return next ? {span: next, events: 0} : {span, events: span.pattern.codes.length};
  };
  const peak = run.shown.allocated === run.peak.allocated ? "peak" : "highest known moment";
  return [["start", {span: run.spans[0], events: 0}],
          ...[...ends].map(([name, span]) => [name, after(span)]), [peak, run.shown]]
    .map(([name, at]) => ({text: `${run.name}: ${name}`, run, at}));
}

function differenceNode(runs) {
  const moments = runs.flatMap(namedMoments), result = element("div");
  const select = (label, chosen) => element("select", {"aria-label": label, onchange: compare},
    ...moments.map(({text}, i) => element("option", {value: i, selected: i === chosen}, text)));
  const compare = () => {
    const [held, less] = [after, before].map(({value}) => moments[value])
      .map(({run, at}) => run.holdersAt(at));
    for (const holder of less) holder.bytes *= -1, holder.blocks *= -1;
    const rows = sumBy([...held, ...less], ({tag}) => tagText(tag)).filter(([, bytes]) => bytes)
      .sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
    const all = changeText(bytesOf([...held, ...less]));
    result.replaceChildren(table([["line", "change", "blocks"], ["all", all, ""],
      ...rows.slice(0, 30).map(([text, bytes, blocks]) =>
        [text, changeText(bytes), (blocks > 0 ? "+" : "") + blocks])]));
  };
  const before = select("before", 1), after = select("after", namedMoments(runs[0]).length - 1);
  compare();
  return element("div", {}, element("p", {}, "from ", before, " to ", after), result);
}
