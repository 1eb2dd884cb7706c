"""Opens pages of `compare_memory --report` in a real browser: numbers, mouse, keyboard, themes, widths.

    python3 tests/page/check.py BUILD          checks, and leaves pictures in BUILD/page
    python3 tests/page/check.py --open PAGE... seconds until each page is drawn
    python3 tests/page/check.py --picture PAGE the pictures in docs/, of the demo's page
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time

import browser

UNITS = ["B", "KiB", "MiB", "GiB"]


def figure(count):
    """As core/memory/figures.h formats bytes."""
    value, unit = count, 0
    while value >= 1023.95 and unit < 3:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {UNITS[unit]}" if unit else f"{value} B"


def check(what, is_so, *told):
    if not is_so:
        sys.exit(f"{what}: failed {' '.join(map(str, told))}")
    print(what)


def check_numbers(page, figures, printed):
    """The table says what the JSON and the printed table say, and replaying the events ends at the same bytes."""
    table = page.run("[...document.querySelectorAll('.figures tbody tr')].map((row) => "
                     "[...row.children].map((cell) => cell.textContent))")
    shown = {row[0]: row[1:] for row in table}
    for mode, program in figures.items():
        memory = program["memory"]
        expected = [figure(memory[name]) for name in
                    ["predicted_peak_bytes", "peak_bytes", "held_between_steps_bytes", "after_close_bytes"]]
        check(f"figures of {mode}", shown[mode][:2] + shown[mode][4:] == expected, shown[mode], expected)
        check(f"peak of {mode} in a step", any(shown[mode][2] in line for line in printed.splitlines()
                                               if line.startswith("peak in a step")), shown[mode], printed)
    measured = [[program["memory"][name] for name in ["peak_bytes", "held_between_steps_bytes", "after_close_bytes"]]
                for program in figures.values()]
    replayed = page.run("report.runs.map((data) => new Run(data)).map((run) => "
                        "[run.peak.allocated, stepFigures(run).held, allocatedOf(run.end)])")[:len(measured)]
    check("events add up to the figures, byte for byte", replayed == measured, replayed, measured)


def check_old_events(page):
    """A run whose first events were condensed: blocks from then are told by their category, at any moment."""
    page.run("""var old = new Run({name: "old", predicted_peak_bytes: 0, plans: [], tags: [["relu", "a.cpp", 1, ""]], before: [0, 0, 0, 0, 0, 0, 0, 0],
      pieces: [[4096, 1024, 0, 0, 1], [8192, 512, 3, 0, 1]], names: [], spans: [[0, -1, 5, 1], [1, -1, 1, 1]],
      patterns: [{codes: [], sample: true, net: [1024, 0, 0, 0, 0, 0, 256, 0], peak: [4096, 0, 0, 0, 0, 0, 0, 0], peak_events: 0},
                 {codes: [1, 4], net: [-1024, 0, 0, 512, 0, 0, 0, 0], peak: [0, 0, 0, 0, 0, 0, 0, 0], peak_events: 0}]})""")
    page.run("""old.plans = [{steps: [{operator: "relu", file: "a.cpp", line: 1, layer: "small"}], arena_bytes: 512, buffers: [[0, 512, 0, 0, 3]]},
      {steps: [{operator: "relu", file: "a.cpp", line: 1, layer: "big"}], arena_bytes: 4096, buffers: [[0, 4096, 0, 0, 3]]}].reverse(), old.tags[0].operator = "session arena" """)
    held = page.run("old.spans.flatMap((span) => [0, span.pattern.codes.length].map((events) => "
                    "old.holdersAt({span, events}).reduce((row, each) => (row[each.category] += each.bytes, row), [0, 0, 0, 0, 0, 0, 0])))")
    rows = page.run("old.spans.flatMap((span) => [0, span.pattern.codes.length].map((events) => old.rowAt({span, events}).slice(0, 7)))")
    check("holders add up to each category", held == rows, held, rows)
    check("the moment shown first is one whose blocks are known", page.run("old.shown.span.index") == 1)
    check("a step ends as the next one begins, known or not", page.run("namedMoments(old).filter((each) => each.text === 'old: first step')"
          ".map(({run, at}) => allocatedOf(run.rowAt(at)))") == [1280])
    check("ranges of condensed events are not known", page.run("old.before[7] = 4096, old.spans[0].start[7] = 4096, rangesAt(old, {span: old.spans[0], events: 0}).length") == 0)
    check("a block born last is seen", page.run("(({bars, count}) => bars.every((bar) => bar.from < count))(barsOfSpan(old, old.spans[1]))"))
    check("the first of a choice is pressed", page.run("document.querySelector('.blocks input').checked"))


def check_replay(page):
    """What is drawn of a moment adds up to its bytes: rows, holders, blocks, curves, the arena's buffers."""
    wrong = page.run("""report.runs.flatMap((data) => {
      const run = new Run(data), wrong = [], sum = (list) => list.reduce((all, each) => all + each.bytes, 0);
      const most = (list) => list.reduce((a, b) => Math.max(a, b), 0);
      const expect = (what, one, other) => { if (one !== other) wrong.push(`${run.name}, ${what}: ${one} ${other}`); };
      run.spans.forEach((span, i) => {
        const next = run.spans[i + 1], codes = span.pattern.codes, {bars} = barsOfSpan(run, span);
        expect("row", String(run.rowAt({span, events: codes.length})), String(next ? next.start : run.end));
        if (next) expect("place", span.x1, next.x0), expect("time", span.time + data.spans[i][3], next.time);
        for (const events of [0, span.pattern.peak_events, codes.length]) {
          const held = allocatedOf(run.rowAt({span, events})), holders = run.holdersAt({span, events});
          const flame = new Flame();
          flame.show(holders);
          const widths = (y) => flame.boxes.boxes.filter((box) => box.y === y).reduce((all, {width}) => all + width, 0);
          expect("flame", widths(0), held);
          expect("holders in the flame", Math.abs(widths(1) - held) <= held / 100, true);
          const sums = sumBy(holders, ({tag}) => tagText(tag)).map(([, bytes]) => bytes);
          expect("largest first", String(sums), String(sums.toSorted((a, b) => b - a)));
          const keys = {line: ({tag}) => tag.file ? `${tag.file.split("/").slice(-2).join("/")}:${tag.line}` : "no line",
                        layer: ({tag}) => tag.layer.split(".")[0] || "no layer"};
          for (const [by, key] of Object.entries(keys)) {
            flame.show(holders, by);
            const sums = new Map([...Map.groupBy(holders, key)].map(([name, list]) => [name, sum(list)]));
            const widest = flame.boxes.boxes.filter(({y}) => y === 1).reduce((a, b) => b.width > a.width ? b : a, {width: 0});
            expect("widest by " + by, widest.width, most([...sums.values()]));
            expect(by, sums.get(widest.text) ?? 0, widest.width);
          }
          if (events === span.pattern.peak_events && events) expect("peak", held, allocatedOf(span.peak));
          expect("holders", sum(holders), held);
          expect("unknown holders", holders.filter(({tag}) => tag.operator.startsWith("from before")).length, 0);
          expect("blocks", sum(bars.filter((bar) => bar.from <= events && events < bar.to)), held);
          const ranges = rangesAt(run, {span, events}).filter((range) => range.isKnown);
          expect("ranges", ranges.reduce((all, {from, to}) => all + to - from, 0), run.rowAt({span, events})[kReserved]);
          expect("longest first", ranges.every(({from, to}, i) => !i || to - from <= ranges[i - 1].to - ranges[i - 1].from), true);
          expect("ranges that touch", ranges.filter((one) => ranges.some((other) => one.to === other.from)).length, 0);
        }
      });
      const chart = new Timelines(element("div"), [run], () => 0).data(run);
      for (const points of [chart[1], run.points(-1, run.spans.at(-1).x1, 4).map(([, row]) => allocatedOf(row))])
        expect("curve", most(points), run.peak.allocated);
      expect("reserved curve", most(chart[8]), most(run.spans.map((span) => span.peak[kReserved])));
      expect("lines", String([chart[9][0], chart[10][0]]), String([run.predicted_peak_bytes, run.arenaPlan()?.peak_bytes ?? null]));
      const moments = namedMoments(run), difference = differenceNode([run]);
      const [before, after] = [...difference.querySelectorAll("select")].map(({value}) => allocatedOf(run.rowAt(moments[value].at)));
      const changes = [...difference.querySelectorAll("td:nth-child(2)")].map(({textContent: text}) => text);
      expect("difference", changes.shift(), changeText(after - before));
      const sizes = changes.map((text) => Math.abs(parseFloat(text)) * 1024 ** units.indexOf(text.split(" ")[1]));
      expect("most changed first", String(sizes), String(sizes.toSorted((a, b) => b - a)));
      if (run.steps) expect("curve of a step", most(stepCurve(run).map(([, bytes]) => bytes)) <= stepFigures(run).peak, true);
      for (const plan of run.plans) {
        const {bars} = barsOfPlan(plan), alive = aliveBySteps(plan);
        alive.forEach((bytes, s) => expect("buffers", sum(bars.filter((bar) => bar.from <= s && s < bar.to)), bytes));
        expect("bound", plan.peak_bytes - plan.arena_bytes + most(alive), plan.lower_bound_bytes);
      }
      return wrong;
    })""")
    check("each moment adds up", not wrong, len(wrong), wrong[:5])


def check_savings(page):
    """Each run is compared with the one that it is named after, or the first."""
    peaks = dict(page.run("report.runs.map((data) => [data.name, stepFigures(new Run(data)).peak])"))
    shown = page.run("[...document.querySelectorAll('.figures tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
    for name, *cells in shown:
        base = name.split(", ")[0] if ", " in name else next(iter(peaks))
        percent = 100 * (peaks[name] / peaks[base] - 1)
        expected = [figure(peaks[name]), "–" if name == base else f"{'+' * (percent > 0)}{percent:.1f} % ({base})"]
        check(f"what {name} saves", cells[2:4] == expected, cells, expected)


def check_mouse(page):
    left, top, width, height = page.box(".u-over")
    middle = top + height / 2
    page.mouse("mouseMoved", left + 0.98 * width, middle)
    page.settle()
    whole = page.text(".timelines .status")
    page.drag(left + 0.3 * width, middle, left + 0.4 * width)
    page.mouse("mouseMoved", left + 0.98 * width, middle)
    page.settle()
    zoomed = page.text(".timelines .status")
    steps = [int(re.search(r"step (\d+)", text).group(1)) if "step" in text else 1 << 30 for text in [whole, zoomed]]
    check("dragging zooms", steps[1] < steps[0], whole, zoomed)
    page.click(left + 0.5 * width, middle)
    check("a click shows the moment", "step" in page.text(".chosen"), page.text(".chosen"))
    page.click(left + 0.5 * width, middle, count=2)
    page.mouse("mouseMoved", left + 0.98 * width, middle)
    page.settle()
    check("a double click shows the whole run", page.text(".timelines .status") == whole)

    button = "[...document.querySelectorAll('.legend button')].find((each) => each.textContent === '{}').click()"
    page.run(button.format("one step"))
    page.mouse("mouseMoved", left + 0.98 * width, middle)
    page.settle()
    check("a button zooms in", page.text(".timelines .status") != whole)
    page.run(button.format("whole run"))
    page.settle()
    names = page.run("followed.timelines.charts[0].plot.axes.at(-1)._values")
    check("marks have their names", any(page.run("report.runs[0].names").count(name) for name in names), names)

    heights = page.run("""(() => {
      const shown = new Timelines(document.body, report.runs.map((data) => new Run(data)), () => {}), with_reserved = shown.most;
      shown.node.querySelector(".legend input").click();
      shown.node.remove();
      return [with_reserved, shown.most, Math.max(...shown.runs.map((run) => Math.max(run.peak.allocated, run.predicted_peak_bytes)))];
    })()""")
    check("charts without reserved bytes are as high as the peak", heights[0] > heights[1] == heights[2], heights)

    left, top, width, height = page.box(".blocks canvas")
    legend = "[...document.querySelectorAll('.blocks .legend span')].map((each) => each.textContent)"
    check("blocks' colours have names", page.run(legend) and set(page.run(legend)) <= set(page.run("categories")), page.run(legend))
    before = page.text(".blocks .status")
    page.mouse("mouseMoved", left + width / 2, top + height / 2)
    page.settle()
    told = page.text(".blocks .status")
    check("a block tells operator, line, bytes and life", re.search(r":\d+: .*bytes\).* from .* to ", told), told)
    page.click(left + width / 2, top + height / 2)
    page.mouse("mouseMoved", left + width / 2, top + 2)
    check("a click keeps it", page.text(".blocks .status") == told != before)
    left, top, width, height = page.box(".flame canvas")
    page.mouse("mouseMoved", left + width / 4, top + 33)
    page.settle()
    check("a holder tells its share", "%" in page.text(".flame .status"))


def check_keyboard(page):
    page.run("document.querySelector('.chart').focus()")
    page.press("Home", "ArrowRight")
    first = page.text(".timelines .status")
    page.press("ArrowRight")
    check("arrows go from span to span", page.text(".timelines .status") != first)
    page.press("ArrowRight", shift=True)
    check("the keys show the moment", "after event 1 of" in page.text(".chosen"), page.text(".chosen"))
    page.press("End")
    check("End goes to the last span", 'before "end"' in page.text(".timelines .status"))
    page.run("[...document.querySelectorAll('.choice button')].find((each) => each.textContent === report.runs[0].name).click()")
    told, row = page.text(".timelines .status"), page.run(
        "new Run(report.runs[0]).rowAt(new Run(report.runs[0]).peak)")
    split = ", ".join(f"{name} {figure(count)}" for name, count in zip(page.run("categories"), row) if count > 0)
    expected = f"{figure(sum(row[:-1]))} allocated ({split}), {figure(row[-1])} reserved, 100.0 % of the run's peak"
    check("a chart tells its bytes", expected in told, told, expected)
    check("a button goes to the peak", page.text(".chosen") == told, told)
    page.press(*["ArrowLeft"] * 100, shift=True)
    check("Shift goes back event by event", "after event 0 of" in page.text(".chosen"), page.text(".chosen"))
    page.run("document.querySelector('.blocks canvas').focus()")
    page.press("Escape", "ArrowRight", "ArrowRight")
    second = page.text(".blocks .status")
    page.press("ArrowRight")
    check("arrows go from block to block", page.text(".blocks .status") != second)
    page.run("document.querySelector('.flame canvas').focus()")
    page.press("Escape", "ArrowDown", "ArrowDown")
    check("arrows go down the holders", page.text(".flame .status") and "all" not in page.text(".flame .status"))
    opened = page.text(".flame .status")
    page.press("Enter", "ArrowDown", "ArrowDown")
    check("Enter opens a holder and keeps the focus", page.text(".flame .status") != opened, opened)
    page.press("Escape")
    check("Escape shows all holders", page.text(".flame .status").startswith("all: "), page.text(".flame .status"))
    page.run("[...document.querySelectorAll('.chart')].at(-1).focus()")
    values = "[...document.querySelectorAll('.u-legend .u-value')].map((each) => each.textContent)"
    page.press("ArrowRight", "ArrowRight")
    check("arrows tell the values of a step", all(re.search(r"[%B–]$", text) for text in page.run(values)) and
          page.run(values)[0] != "–", page.run(values))
    order = []
    page.run("document.activeElement.blur()")
    for _ in range(40):
        page.press("Tab")
        order.append(page.run("document.activeElement.className + document.activeElement.tagName"))
    check("Tab reaches charts, blocks and holders",
          any("chart" in each for each in order) and any("CANVAS" in each for each in order))


def check_server(page, build):
    """--watch: the page of a running program, which goes on; for this machine alone."""
    program = subprocess.Popen([os.path.join(build, "examples/train_lstm"), "--device", "cpu", "--epochs", "3000", "--watch"],
                               stdout=subprocess.PIPE, text=True)
    try:
        url = program.stdout.readline().split()[-1]
        page.call("Page.navigate", url=url)
        deadline = time.monotonic() + 60
        while not page.run("typeof followed === 'object' && followed && followed.timelines.whole[1] > 20") and time.monotonic() < deadline:
            time.sleep(0.2)
        first = page.run("followed.timelines.whole[1]")
        while page.run("followed.timelines.whole[1]") == first and time.monotonic() < deadline:
            time.sleep(0.2)
        check("a live page goes on", page.run("followed.timelines.whole[1]") > first)
        page.run("[...document.querySelectorAll('.choice button')].find((each) => each.textContent === 'now').click()")
        check("the peak of a live page is of its newest data", page.run("followed.timelines.charts[0].at !== null"))
        page.run("buildPage()")  # as when it is printed
        check("a page that is built again shows what was seen last", page.run("followed.timelines.whole[1]") > first)
        page.run("window.before = true, window.fetch = async () => ({json: () => ({...report, runs: [{...report.runs[0], began: 1, spans: []}]})})")
        while page.run("window.before === true") and time.monotonic() < deadline:
            time.sleep(0.2)
        check("a live page shows another recording", page.run("window.before") is None)
        host = url.split("/")[2]
        for name, expected in [(host, 200), ("elsewhere.example", 403)]:
            connection = http.client.HTTPConnection(host)
            connection.request("GET", "/data.json", headers={"Host": name})
            check(f"asked as {name.split(':')[0]}: {expected}", connection.getresponse().status == expected)
    finally:
        program.send_signal(signal.SIGINT)
        check("Ctrl-C ends it with 130", program.wait(30) == 130)


def check_refused(page, build, path):
    """A run that was refused is on the page, up to there and beyond."""
    for mode in ["graph", "eager", "compiled"]:
        code = subprocess.run([os.path.join(build, "examples/train_mlp"), "--device", "cpu", "--mode", mode, "--memory-limit", "180KiB",
                               "--report", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        page.open(path)
        names = page.run("report.runs[0].names")
        check(f"a refused run, {mode}, says so and gives all back", code == 1 and any("refused" in name for name in names) and
              page.run("allocatedOf(new Run(report.runs[0]).end)") == 0, code, names)


def check_large(page):
    """A run of 200,000 steps with as many blocks and a plan of as many nodes."""
    page.run("""(() => {
      const count = 200000, fill = (f) => Array.from({length: count}, (_, i) => f(i)), none = new Array(8).fill(0);
      const bytes = [512 * count, ...none.slice(1)], plan = {steps: fill(() => ["a", "f", 1, ""]), arena_bytes: 1, peak_bytes: 1, lower_bound_bytes: 1, text: "", buffers: fill((i) => [512 * i, 512, i, i, 0])};
      const run = new Run({name: "large", is_relative: true, predicted_peak_bytes: 1, plans: [plan], tags: [["an arena", "f", 1, ""]], names: [],
        pieces: fill((i) => [512 * i, 512, 0, 0, 1]), patterns: [{codes: fill((i) => 4 * i), net: bytes, peak: bytes, peak_events: count},
        {codes: [], net: none, peak: none, peak_events: 0}], spans: fill((i) => [i ? 1 : 0, -1, 1, 1])});
      const at = {span: run.spans[0], events: count};
      new Timelines(element("div"), [run], () => {});
      figuresNode([run]), new Ranges().show(rangesAt(run, at)), new Flame().show(run.holdersAt(at));
      planNode(run.plans[0]), new Blocks("").show(barsOfPlan(run.plans[0])), run.plans = [], stepCurve(run);
    })()""")
    print("a run of 200,000 steps, blocks and nodes is shown")


def pictures(page, name, folder):
    for dark in [False, True]:
        for width in [400, 800, 1280]:
            page.size(width, 900, dark)
            page.settle()
            wide = page.run("document.documentElement.scrollWidth")
            check(f"{name} fits {width} columns of pixels", wide <= width, wide)
            page.picture(os.path.join(folder, f"{name}-{width}{'-dark' if dark else ''}.png"))
    page.size(1280, 900)


def crop(page, name, first, last, index=0):
    """A picture in docs/ as wide as the page, from the top of one element to the bottom of another."""
    page.settle()
    top, bottom, width, dark = page.run(
        f"[document.querySelector('{first}').getBoundingClientRect().top + scrollY - 2,"
        f"document.querySelectorAll('{last}')[{index}].getBoundingClientRect().bottom + scrollY + 6,"
        "innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]")
    page.picture(f"docs/{name}{'-dark' if dark else ''}.png", {"x": 0, "y": top, "width": width, "height": bottom - top})


def seconds_to_open(path):
    with browser.Browser() as page:
        page.size(1280, 900)
        began = time.monotonic()
        page.open(path)
        took = time.monotonic() - began
        if problems := page.problems():
            sys.exit(f"{path}: {problems}")
        return took


def main():
    if not browser.find():
        sys.exit("page: left out, there is no chromium")
    if sys.argv[1] == "--open":
        for path in sys.argv[2:]:
            print(f"{seconds_to_open(path):.2f} s, {os.path.getsize(path)} bytes: {path}")
        return
    if sys.argv[1] == "--picture":
        with browser.Browser() as page:
            for dark in [False, True]:
                page.size(880, 900, dark)
                page.open(sys.argv[2])
                page.run("[...document.querySelectorAll('button')].find((each) => each.textContent === 'eager').click()")
                page.run("followed.timelines.show(0, 4)")
                crop(page, "report", ".legend", ".timelines .chart", 2)
                crop(page, "moment", ".chosen", ".flame canvas")
                crop(page, "savings", "section:nth-last-of-type(2) .chart", "section:nth-last-of-type(2) .chart")
        return
    build, folder = sys.argv[1], os.path.join(sys.argv[1], "page")
    os.makedirs(folder, exist_ok=True)
    with browser.Browser() as page:
        for model in ["lstm", "mlp"]:
            path, figures = (os.path.join(folder, model + end) for end in [".html", ".json"])
            printed = subprocess.run([os.path.join(build, "examples/compare_memory"), "--model", model, "--device", "cpu",
                                      "--epochs", "3", "--report", path, "--json", figures], check=True, stdout=subprocess.PIPE, text=True).stdout
            page.size(1280, 900)
            page.open(path)
            with open(figures) as file:
                check_numbers(page, json.load(file), printed)
            check_old_events(page)
            check_replay(page)
            check_savings(page)
            check_mouse(page)
            check_keyboard(page)
            check_large(page)
            pictures(page, model, folder)
            check(f"{model}: no error, nothing loaded", not page.problems(), page.problems())
        check_refused(page, build, os.path.join(folder, "refused.html"))
        check("no error there", not page.problems(), page.problems())
        check_server(page, build)


main()
