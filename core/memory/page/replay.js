// The state of a run's memory at any moment. A moment is a span of the run and a number of its events.

const kCategories = 7, kReserved = 7;

// Of all categories, or of the first ones.
function allocatedOf(row, count = kCategories) {
  let sum = 0;
  for (let i = 0; i < count; ++i) sum += row[i];
  return sum;
}

const tagOf = ([operator, file, line, layer]) => ({operator, file, line, layer});

class Run {
  constructor(data) {
    Object.assign(this, data);  // name, predicted_peak_bytes, patterns and so on
    this.plans = data.plans.map((plan) => ({...plan, steps: plan.steps.map(tagOf)}));
    this.tags = data.tags.map(tagOf);
    this.pieces = data.pieces.map(([address, bytes, category, tag, blocks]) =>
      ({address, bytes, category, tag: this.tags[tag], blocks}));
    for (const pattern of this.patterns) pattern.isWhole = !pattern.thinned && !pattern.sample;
    if (data.is_relative) this.before = new Array(8).fill(0);
    this.spans = this.placed(data);
    // The first span whose events were kept.
    this.known = 1 + this.spans.findLastIndex((span) => span.pattern.sample);
    this.initial = new Int32Array(this.pieces.length);
    if (!data.is_relative) this.findInitial();
    const highest = (spans) => spans
      .map((span) => ({span, events: span.pattern.peak_events, allocated: allocatedOf(span.peak)}))
      .reduce((most, each) => (most && most.allocated >= each.allocated ? most : each), null);
    this.peak = highest(this.spans);
    // The highest moment whose blocks are known.
    this.shown = highest(this.spans.filter((span) => this.isKnown(span))) || this.peak;
  }

  // Spans on the axis of steps: what happens before the end of a step shares its place evenly.
  placed({spans, names}) {
    let row = this.before, time = 0, step = 0;
    const placed = spans.map(([number, name, steps, nanoseconds], index) => {
      const pattern = this.patterns[number], above = (more) => row.map((b, c) => b + more[c]);
      const span = {index, pattern, name: names[name], step, steps, time,
                    start: row, peak: above(pattern.peak)};
      row = above(pattern.net);
      time += nanoseconds;
      step += steps;
      return span;
    });
    Object.assign(this, {steps: step, end: row});
    for (const [begin, group] of Map.groupBy(placed, (span) => span.step))
      group.forEach((span, i) => {
        const width = group.at(-1).steps || 1;
        span.x0 = begin + width * i / group.length;
        span.x1 = begin + width * (i + 1) / group.length;
      });
    return placed;
  }

  change(row, code) {
    const {category, bytes} = this.pieces[code >> 2];
    row[category] += code & 1 ? -bytes : bytes;
  }

  isKnown(span) { return span.pattern.isWhole && span.index >= this.known; }

  // Pieces from before the kept events are known by their end.
  findInitial() {
    const count = new Int32Array(this.pieces.length);
    for (const span of this.spans)
      for (const code of span.pattern.codes)
        if (code & 1) this.initial[code >> 2] = Math.max(this.initial[code >> 2], -(--count[code >> 2]));
        else ++count[code >> 2];
  }

  // Ends of the spans that the program named, and of its first step: [[name, span]].
  marks() {
    const first = this.spans.find((span) => span.steps);
    return this.spans.filter((span) => span.name || span === first)
      .map((span) => [span.name || "first step", span]);
  }

  // Bytes by category, and reserved. Within a span of which events are missing, those of its
  // beginning.
  rowAt({span, events}) {
    const {codes, isWhole} = span.pattern, row = [...span.start];
    for (const code of codes.slice(0, isWhole ? events : 0)) this.change(row, code);
    return row;
  }

  // How many of each piece are alive, as far as the kept events tell.
  aliveAt(at) {
    if (at.span.index < this.known) return new Int32Array(this.pieces.length);
    const alive = Int32Array.from(this.initial);
    this.eachCode(at, (code) => { alive[code >> 2] += code & 1 ? -1 : 1; });
    return alive;
  }

  // Calls visit(code) for the events before a moment.
  eachCode({span, events}, visit) {
    for (let i = 0; i < span.index; ++i) this.spans[i].pattern.codes.forEach(visit);
    span.pattern.codes.slice(0, span.pattern.isWhole ? events : 0).forEach(visit);
  }

  // Mapped ranges, [from, to]. One that grew in several events may go in one, or in other pieces.
  mappedAt(at) {
    let ranges = [];
    this.eachCode(at, (code) => {
      const {address, bytes, category} = this.pieces[code >> 2], end = address + bytes;
      if (category !== kReserved) return;
      ranges = ranges.flatMap(([from, to]) => [[from, Math.min(to, address)], [Math.max(from, end), to]])
        .filter(([from, to]) => from < to);
      if (!(code & 1)) ranges.push([address, end]);
    });
    return ranges;
  }

  // Who holds memory: [{tag, category, bytes, blocks}]. An arena is told by the buffers of the plan
  // of its size, or of the only plan.
  holdersAt(at) {
    const alive = this.aliveAt(at), holders = [], unknown = this.rowAt(at).slice(0, kCategories);
    const parts = [];  // of arenas
    this.pieces.forEach((piece, i) => {
      if (alive[i] <= 0 || piece.category === kReserved || !piece.bytes) return;
      unknown[piece.category] -= piece.bytes * alive[i];
      const list = piece.tag.operator.includes("arena") ? parts : holders;
      list.push({...piece, bytes: piece.bytes * alive[i], blocks: piece.blocks * alive[i]});
    });
    const arenas = [], plans = this.plans.filter((plan) => plan.steps.length);
    // Parts of one arena lie one behind the other.
    for (const part of parts.sort((a, b) => a.address - b.address)) {
      if (arenas.at(-1)?.end !== part.address) arenas.push({bytes: 0, parts: []});
      const arena = arenas.at(-1);
      arena.parts.push(part), arena.bytes += part.bytes, arena.end = part.address + part.bytes;
    }
    for (const arena of arenas) {
      const isOnly = plans.length === 1 && arenas.length === 1;
      const plan = plans.find(({arena_bytes: bytes}) =>
        bytes === arena.bytes || isOnly && bytes < arena.bytes);
      for (const holder of plan ? arenaHolders(plan, arena.bytes) : arena.parts) holders.push(holder);
    }
    const operator = this.known ? "from before the kept events" : "from before the recording";
    unknown.forEach((bytes, category) => {
      if (bytes > 0) holders.push({tag: {operator, file: "", line: 0, layer: ""}, category, bytes, blocks: 0});
    });
    return holders;
  }

  arenaPlan() { return this.plans.find((plan) => plan.steps.length); }

  spanAt(x) { return this.spans.findLast((span) => span.x0 <= x) || this.spans[0]; }

  placeOf({span: {x0, x1, pattern}, events}) {
    return x0 + (x1 - x0) * (events + 0.5) / (pattern.codes.length + 1);
  }

  momentAt(x) {
    const span = this.spanAt(x), count = span.pattern.codes.length;
    let events = Math.floor((count + 1) * (x - span.x0) / (span.x1 - span.x0));
    events = Math.min(Math.max(events, 0), count);
    while (events > 0 && span.pattern.codes[events - 1] & 2) ++events;  // within one moment
    return {span, events};
  }

  // Points between x0 and x1: event by event where they are few, else the highest moment of each
  // span or of several neighbours. [x, row] pairs.
  points(x0, x1, most) {
    const seen = this.spans.slice(this.spanAt(x0).index, this.spanAt(x1).index + 1), points = [];
    const events = seen.reduce((sum, span) => sum + span.pattern.codes.length, 0);
    const bucket = Math.ceil(seen.length / most);
    for (let i = 0; i < seen.length; i += bucket) {
      const peaks = seen.slice(i, i + bucket).map(({peak}) => peak);
      const {pattern, start, x0, x1} = seen[i], row = [...start];
      if (bucket > 1 || events > 4 * most || !pattern.isWhole) {
        const top = peaks.reduce((a, b) => (allocatedOf(b) > allocatedOf(a) ? b : a));
        points.push([x0, top.with(kReserved, largest(peaks.map((peak) => peak[kReserved])))]);
        continue;
      }
      points.push([x0, start]);
      pattern.codes.forEach((code, e, {length}) => {
        this.change(row, code);
        if (!(code & 2)) points.push([x0 + (x1 - x0) * (e + 1) / (length + 1), [...row]]);
      });
    }
    const end = seen.at(-1), next = this.spans[end.index + 1];
    points.push([end.x1, next ? next.start : this.end]);
    return points;
  }
}

// Bytes alive in an arena at each step of its plan.
function aliveBySteps(plan) {
  const alive = new Array(plan.steps.length).fill(0);
  for (const [, bytes, first, last] of plan.buffers)
    for (let s = first; s <= last && s < alive.length; ++s) alive[s] += bytes;
  return alive;
}

function arenaHolders(plan, arena) {
  const alive = aliveBySteps(plan), top = alive.indexOf(largest(alive)), holders = [];
  let left = arena;
  for (const [, bytes, first, last, category] of plan.buffers)
    if (first <= top && top <= last) {
      holders.push({tag: plan.steps[first], category, bytes, blocks: 1});
      left -= bytes;
    }
  if (left > 0) holders.push({tag: {operator: "arena, not in use then", file: "", line: 0, layer: ""}, category: 6, bytes: left, blocks: 1});
  return holders;
}

function bytesOf(holders) { return holders.reduce((sum, {bytes}) => sum + bytes, 0); }

// Sums holders by a text: [[text, bytes, blocks]], largest first.
function sumBy(holders, text) {
  const sums = new Map();
  for (const holder of holders) {
    const key = text(holder), sum = sums.get(key) || [key, 0, 0];
    sum[1] += holder.bytes, sum[2] += holder.blocks;
    sums.set(key, sum);
  }
  return [...sums.values()].sort((a, b) => b[1] - a[1]);
}
