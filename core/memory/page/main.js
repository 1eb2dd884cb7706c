// The page, from its data.

const report = JSON.parse(document.getElementById("data").textContent);
const categories = report.categories.map((name) => name.replaceAll("_", " "));

function addRecorded(page, runs) {
  const figures = element("div", {class: "figures"}, figuresNode(runs));
  page.append(section("Figures", "Allocated bytes" + (report.runs.some((run) => run.is_relative)
    ? ", above what the device held before each run." : "."), figures));
  const blocks = new Blocks("Blocks of a step"), flame = new Flame(), ranges = new Ranges();
  const chosen = element("p", {class: "chosen"});
  const pick = (run, at) => {
    chosen.textContent = momentText(run, at);
    blocks.show(barsOfSpan(run, at.span));
    flame.show(run.holdersAt(at));
    ranges.show(rangesAt(run, at));
    timelines.mark(run, at);
  };
  const charts = section("Over the steps", "Drag to zoom, double-click for the whole run, click " +
    "a moment to see its blocks below. Keys: ← → by steps, with Shift by events, Home, End.");
  page.append(charts);
  const timelines = new Timelines(charts, runs, pick);
  const pickPeak = (run) => pick(run, run.shown);
  const peaks = runs.map(({name}, i) =>  // of the newest data
    element("button", {onclick: () => pickPeak(timelines.runs[i])}, name));
  page.append(section("One moment", null, element("div", {class: "choice"}, "peak of: ", ...peaks),
    chosen, element("h3", {}, "Blocks, each in its place from birth to death"), blocks.node,
    element("h3", {}, "Holders"), flame.node, element("h3", {}, "Mapped ranges"), ranges.node));
  const peak = runs.reduce((a, b) => (b.peak.allocated > a.peak.allocated ? b : a));
  pickPeak(peak);
  return {timelines, figures};
}

function addPlan(page, title, plan) {
  const part = section(title, null, planNode(plan));
  page.append(part);
  if (!plan.steps.length) return;
  const blocks = new Blocks("Buffers of the plan");
  part.append(element("h3", {}, "Buffers in the arena, over the plan's steps"), blocks.node);
  blocks.show(barsOfPlan(plan));
}

function buildPage() {
  const runs = report.runs.map((data) => new Run(data));
  const recorded = runs.filter((run) => run.spans.length);
  const page = document.getElementById("page");
  document.title = report.title;
  const about = report.told || (report.device ? `Device ${report.device}, ` +
    `${bytesText(report.capacity_bytes)} of memory, ` +
    (report.limit_bytes ? `limit ${bytesText(report.limit_bytes)}` : "no limit") : "");
  page.replaceChildren(element("h1", {}, report.title), element("p", {class: "note"}, about));
  if (recorded.length) followed = addRecorded(page, recorded);
  else if (!runs.some((run) => run.plans.length))
    page.append(element("p", {}, "Nothing has happened on the device while it was recorded."));
  for (const run of runs)
    for (const plan of run.plans)
      addPlan(page, runs.length > 1 ? `Plan of ${run.name}` : "Plan", plan);
  const stepped = recorded.filter((run) => run.steps);
  if (stepped.length > 1) {
    const part = section("What each way saves", "The bytes in use over one step; the figures " +
      "above have the most.");
    page.append(part);
    addCurves(part, stepped);
  }
  if (recorded.length)
    page.append(section("Two moments", "What grew between them.", differenceNode(recorded)));
}

let followed = null;  // charts and figures of what is recorded

// Asks the server of a live page for newer data, less often where that takes long.
async function follow() {
  const tell = (text) => { document.querySelector(".note").textContent = report.told = text; };
  for (let took = 0;;) {
    await new Promise((done) => setTimeout(done, 1000 + 4 * took));
    const asked = performance.now();
    const newer = await fetch("data.json").then((answer) => answer.json()).catch(() => null);
    if (!newer) return tell("The program no longer answers: this is the last that was seen.");
    took = performance.now() - asked;
    if (!newer.runs.length) {
      tell("Nothing is being recorded now: this is the last that was seen.");
    } else {
      if (newer.runs[0].began !== report.runs[0]?.began || !followed) return location.reload();
      report.runs = newer.runs;  // for a page that is built again
      const runs = newer.runs.map((run) => new Run(run));
      followed.figures.replaceChildren(figuresNode(runs));
      followed.timelines.update(runs);
    }
  }
}

buildPage();
if (report.live) follow();
// Canvases take their colours when they are drawn.
for (const query of ["(prefers-color-scheme: dark)", "print"])
  matchMedia(query).addEventListener("change", buildPage);
