// The page, from its data.

const report = JSON.parse(document.getElementById("data").textContent);
const categories = report.categories.map((name) => name.replaceAll("_", " "));

function buildPage() {
  const runs = report.runs.map((data) => new Run(data)), recorded = runs.filter((run) => run.spans.length);
  const page = document.getElementById("page"), later = [];
  document.title = report.title;
  const about = [report.device && `Device ${report.device}`, report.capacity_bytes && `${bytesText(report.capacity_bytes)} of memory`,
                 report.device && (report.limit_bytes ? `limit ${bytesText(report.limit_bytes)}` : "no limit")].filter(Boolean).join(", ");
  page.replaceChildren(element("header", {}, element("h1", {}, report.title), element("p", {class: "note"}, about)));
  if (recorded.length) {
    const isRelative = report.runs.some((run) => run.is_relative);
    const figures = element("div", {}, figuresNode(recorded));
    page.append(section("Figures", "Allocated bytes" + (isRelative ? ", above what the device held before each run." : "."), figures));
    const blocks = new Blocks("Blocks of a step"), flame = new Flame(), ranges = new Ranges(), chosen = element("p", {class: "chosen"});
    const pick = (run, span, events) => {
      chosen.textContent = momentText(run, span, events);
      blocks.show(barsOfSpan(run, span));
      flame.show(run.holdersAt({span, events}));
      timelines.mark(run, span, events);
      ranges.show(rangesAt(run, {span, events}));
    };
    const timelines = new Timelines(recorded, report.limit_bytes, categories, pick);
    page.append(section("Over the steps", "Drag to zoom, double-click for the whole run, click a moment to see its blocks below. Keys: ← → step by step, " +
      "with Shift event by event, + − zoom, p the peak, Enter shows the moment below.", timelines.node));
    later.push(() => timelines.draw());
    if (report.live) later.push(() => follow(timelines, figures));
    const peak = recorded.reduce((a, b) => (b.peak.allocated > a.peak.allocated ? b : a));
    const pickers = element("div", {class: "choice"}, "peak of: ", ...recorded.map((run) =>
      element("button", {type: "button", onclick: () => pick(run, run.shown.span, run.shown.events)}, run.name)));
    page.append(section("One moment", null, pickers, chosen,
      element("h3", {}, "Blocks, each in its place from birth to death"), blocks.node,
      element("h3", {}, "Holders"), flame.node, element("h3", {}, "Mapped ranges"), ranges.node));
    later.push(() => pick(peak, peak.shown.span, peak.shown.events));
  }
  for (const run of runs)
    for (const plan of run.plans) {
      const parts = [planNode(plan)];
      if (plan.steps.length) {
        const blocks = new Blocks(`Buffers of the plan of ${run.name}`);
        parts.push(element("h3", {}, "Buffers in the arena, over the plan's steps"), blocks.node);
        later.push(() => blocks.show(barsOfPlan(plan)));
      }
      page.append(section(runs.length > 1 ? `Plan of ${run.name}` : "Plan", null, ...parts));
    }
  const stepped = recorded.filter((run) => run.steps);
  if (stepped.length > 1) {
    const [node, draw] = savingsNode(stepped);
    page.append(section("What each way saves", "The most in a step, and the bytes in use over one step.", node));
    later.push(draw);
  }
  if (recorded.length) page.append(section("Two moments", "What grew between them, by line.", differenceNode(recorded)));
  if (page.children.length === 1) page.append(element("p", {}, "Nothing happened on the device while it was recorded."));
  for (const each of later) each();
}

// Asks the server of a live page for newer data, less often where that takes long.
let followed = null;  // the charts of a live page

function follow(timelines, figures) {
  followed = timelines;
  let hasEnded = false;
  const ask = async () => {
    const began = performance.now();
    try {
      const data = await (await fetch("data.json")).json(), runs = data.runs.map((run) => new Run(run));
      if (!runs.length) {
        hasEnded = true;
        timelines.status.textContent = "Nothing is being recorded now: this is the last that was seen.";
      } else {
        if (hasEnded || runs[0].before.join() !== timelines.runs[0].before.join()) return location.reload();  // another recording
        figures.replaceChildren(figuresNode(runs));
        timelines.update(runs);
      }
    } catch {
      timelines.status.textContent = "The program no longer answers: this is the last that was seen.";
      return;
    }
    setTimeout(ask, 1000 + 4 * (performance.now() - began));
  };
  setTimeout(ask, 1000);
}

buildPage();
if (report.live && !report.runs.some((run) => run.spans.length)) {
  document.querySelector("header").append(element("p", {}, "Nothing is being recorded on this device now."));
  setTimeout(() => location.reload(), 2000);
}
// Canvases take their colours when they are drawn.
for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", buildPage);
