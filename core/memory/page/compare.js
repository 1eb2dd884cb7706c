// Runs beside each other: their figures, what each saves, and two moments.

// The most in a step, and what is held when the last one has ended.
function stepFigures(run) {
  const steps = run.spans.filter((span) => span.steps), last = steps.at(-1);
  if (!last) return null;
  const after = run.spans[last.index + 1];
  return {peak: largest(steps.map((span) => allocatedOf(span.peak))), held: allocatedOf(after ? after.start : run.end)};
}

function figuresNode(runs) {
  const bytes = (value) => (value === undefined || value === null ? "–" : bytesText(value));
  return table([["", "peak predicted", "peak", "peak in a step", "held between steps", "at the end"],
    ...runs.map((run) => {
      const steps = stepFigures(run);
      return [run.name, bytes(run.predicted_peak_bytes || null), bytes(run.peak.allocated), bytes(steps?.peak), bytes(steps?.held),
              bytes(allocatedOf(run.end))];
    })]);
}

// "graph, 4 micro-batches" is compared with "graph", other runs with the first.
function baseOf(runs, run) {
  const comma = run.name.indexOf(", ");
  return runs.find((each) => each.name === run.name.slice(0, comma < 0 ? 0 : comma)) || runs[0];
}

// Bytes over one step, the one that occurs most: those in use, so without the unused part of an arena.
function stepCurve(run) {
  const uses = new Map();
  for (const span of run.spans)
    if (span.steps === 1 && span.pattern.isWhole) uses.has(span.pattern) ? uses.get(span.pattern).push(span) : uses.set(span.pattern, [span]);
  const often = [...uses.values()].sort((a, b) => b.length - a.length)[0];
  if (!often) return [];
  const span = often.at(-1), plan = run.arenaPlan();
  if (plan && run.plans.length === 1)
    return aliveBySteps(plan).map((bytes, s, all) => [s / all.length, allocatedOf(span.start) - plan.arena_bytes + bytes]);
  return run.points(span.x0, span.x1 - 1e-9, 2000).map(([x, row]) => [(x - span.x0) / (span.x1 - span.x0), allocatedOf(row)]);
}

function savingsNode(runs) {
  const rows = runs.map((run) => [run, baseOf(runs, run)]).map(([run, base]) => {
    const mine = stepFigures(run), theirs = stepFigures(base);
    const change = run === base || !theirs ? ["–", "–"] : [changeText(mine.peak - theirs.peak), (100 * (mine.peak / theirs.peak - 1)).toFixed(0) + " %"];
    return [run.name, bytesText(mine.peak), run === base ? "" : base.name, ...change];
  });
  const holder = element("div", {class: "chart"});
  const draw = () => {
    const curves = runs.map(stepCurve), colours = coloursOf(runs);
    const data = uPlot.join(curves.map((curve) => [curve.map(([x]) => x), curve.map(([, bytes]) => bytes)]));
    const axis = {stroke: style("--text"), grid: {stroke: style("--grid"), width: 1}};
    const plot = new uPlot({
      width: holder.clientWidth, height: 220, legend: {show: true}, cursor: {points: {show: false}},
      series: [{label: "part of the step", value: (_, x) => (x === null ? "–" : (100 * x).toFixed(0) + " %")}, ...runs.map((run, i) => ({
        label: run.name, stroke: colours.get(run), width: 2, spanGaps: true,
        dash: i % 2 ? [6, 3] : [], points: {show: false}, paths: uPlot.paths.stepped({align: 1}), value: (_, v) => (v === null ? "–" : bytesText(v))}))],
      scales: {x: {time: false, range: [0, 1]}, y: {range: (_, low, high) => [0, high * 1.05]}},
      axes: [{...axis, values: (_, splits) => splits.map((x) => Math.round(100 * x) + " %")},
             {...axis, size: 72, space: 22, incrs: Array.from({length: 50}, (_, i) => 2 ** i), values: (_, splits) => splits.map(bytesText)}],
    }, data, holder);
    new ResizeObserver(() => plot.setSize({width: holder.clientWidth, height: 220})).observe(holder);
  };
  return [element("div", {}, table([["run", "peak in a step", "beside", "change", ""], ...rows]), holder), draw];
}

// Moments that a run can be compared at, in their order: its start, each mark by its last time, the peak and the
// ends of steps.
function namedMoments(runs) {
  const moments = [];
  for (const run of runs) {
    const last = new Map(), steps = run.spans.filter((span) => span.steps);
    for (const span of run.spans) if (span.name) last.set(span.name, span);
    const mine = [], add = (text, span, events) => mine.push({text: `${run.name}: ${text}`, run, span, events});
    add("start", run.spans[0], 0);
    const addEnd = (text, span) => {  // where the next one begins, as its own events may be missing
      const next = run.spans[span.index + 1];
      add(text, next || span, next ? 0 : span.pattern.codes.length);
    };
    for (const [name, span] of last) addEnd(name, span);
    if (steps.length) addEnd("end of the first step", steps[0]);
    if (steps.length > 1) addEnd("end of the last step", steps.at(-1));
    add(run.shown.allocated === run.peak.allocated ? "peak" : "highest known moment", run.shown.span, run.shown.events);
    moments.push(...mine.sort((a, b) => a.span.index - b.span.index || a.events - b.events));
  }
  return moments;
}

function differenceNode(runs) {
  const moments = namedMoments(runs), result = element("div");
  const select = (label, chosen) => element("select", {"aria-label": label, onchange: () => compare()},
    ...moments.map((moment, i) => element("option", {value: i, selected: i === chosen}, moment.text)));
  const {span, events} = runs[0].shown, top = moments.findLastIndex((moment) => moment.span === span && moment.events === events);
  const before = select("before", top > 1 ? 1 : 0), after = select("after", top);
  const compare = () => {
    const [a, b] = [before, after].map((each) => moments[each.value]).map((at) => at.run.holdersAt(at));
    const sums = new Map();
    for (const [sign, holders] of [[-1, a], [1, b]])
      for (const [text, bytes, blocks] of sumBy(holders, (holder) => tagText(holder.tag))) {
        const sum = sums.get(text) || [0, 0];
        sums.set(text, [sum[0] + sign * bytes, sum[1] + sign * blocks]);
      }
    const rows = [...sums].filter(([, [bytes]]) => bytes).sort((x, y) => Math.abs(y[1][0]) - Math.abs(x[1][0]));
    const total = rows.reduce((sum, [, [bytes]]) => sum + bytes, 0);
    result.replaceChildren(table([["line", "change", "blocks"], ["all", changeText(total), ""],
      ...rows.slice(0, 30).map(([text, [bytes, blocks]]) => [text, changeText(bytes), (blocks > 0 ? "+" : "") + blocks])]));
  };
  if (moments.length) compare();
  return element("div", {}, element("p", {class: "moments"}, "from ", before, " to ", after), result);
}
