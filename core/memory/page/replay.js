// The state of a run's memory at any moment. A moment is a span of the run and a number of its events.

const kCategories = 7, kReserved = 7;

function allocatedOf(row) {
  let sum = 0;
  for (let i = 0; i < kCategories; ++i) sum += row[i];
  return sum;
}

const tagOf = ([operator, file, line, layer]) => ({operator, file, line, layer});

class Run {
  constructor(data) {
    this.name = data.name;
    this.predicted = data.predicted_peak_bytes;
    this.plans = data.plans.map((plan) => ({...plan, steps: plan.steps.map(tagOf)}));
    this.tags = data.tags.map(tagOf);
    this.pieces = data.pieces.map(([address, bytes, category, tag, blocks]) => ({address, bytes, category, tag: this.tags[tag], blocks}));
    this.patterns = data.patterns;
    for (const pattern of this.patterns) pattern.isWhole = !pattern.thinned && !pattern.sample;
    this.before = data.is_relative ? new Array(8).fill(0) : data.before;
    this.spans = this.placed(data);
    this.known = 1 + this.spans.findLastIndex((span) => span.pattern.sample);  // the first span whose events were kept
    this.initial = new Int32Array(this.pieces.length);
    if (!data.is_relative) this.findInitial();
    const highest = (moments) => moments.reduce((most, m) => (m.allocated > most.allocated ? m : most), {allocated: -1});
    this.peak = highest(this.moments());
    // The highest moment whose blocks are known.
    this.shown = highest(this.moments().filter(({span}) => this.isKnown(span)));
    if (!this.shown.span) this.shown = this.peak;
  }

  // Spans on the axis of steps. Step k lies between k and k + 1; what a program does between two steps
  // shares the last third of the step before, and the place from -1 to 0 before the first.
  placed({spans: rows, names}) {
    let row = this.before, time = 0, step = 0;
    const spans = rows.map(([number, name, steps, nanoseconds], index) => {
      const pattern = this.patterns[number], above = (more) => row.map((b, c) => b + more[c]);
      const span = {index, pattern, name: names[name], step, steps, time,
                    start: row, peak: above(pattern.peak)};
      row = above(pattern.net);
      time += nanoseconds;
      step += steps;
      return span;
    });
    this.steps = step;
    this.end = row;
    for (let i = 0; i < spans.length;) {
      let last = i;
      while (last < spans.length && !spans[last].steps) ++last;
      const first = spans[i].step, begin = first ? first - 1 / 3 : -1;
      for (let j = i; j < last; ++j) {
        spans[j].x0 = begin + (first - begin) * (j - i) / (last - i);
        spans[j].x1 = begin + (first - begin) * (j + 1 - i) / (last - i);
      }
      if (last > i && i > 0) spans[i - 1].x1 = begin;
      if (last < spans.length) spans[last].x0 = spans[last].step, spans[last].x1 = spans[last].step + spans[last].steps;
      i = last + 1;
    }
    return spans;
  }

  change(row, codes, count = codes.length) {
    for (let i = 0; i < count; ++i) {
      const piece = this.pieces[codes[i] >> 2];
      row[piece.category] += codes[i] & 1 ? -piece.bytes : piece.bytes;
    }
    return row;
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

  moments() {
    return this.spans.map((span) => ({span, events: span.pattern.peak_events, allocated: allocatedOf(span.peak)}));
  }

  // Bytes by category, and reserved. Within a span of which events are missing, those of its
  // beginning.
  rowAt({span, events}) {
    const {pattern, start} = span;
    return pattern.isWhole ? this.change([...start], pattern.codes, events) : start;
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
      ranges = ranges.flatMap(([from, to]) => [[from, Math.min(to, address)], [Math.max(from, end), to]]).filter(([from, to]) => from < to);
      if (!(code & 1)) ranges.push([address, end]);
    });
    return ranges;
  }

  // Who holds memory: [{tag, category, bytes, blocks}]. An arena is told by the buffers of the plan of its size, or of the only plan.
  holdersAt(at) {
    const alive = this.aliveAt(at), holders = [], unknown = this.rowAt(at).slice(0, kCategories);
    const parts = [];  // of arenas
    this.pieces.forEach((piece, i) => {
      if (alive[i] <= 0 || piece.category === kReserved || !piece.bytes) return;
      unknown[piece.category] -= piece.bytes * alive[i];
      const holder = {tag: piece.tag, category: piece.category, bytes: piece.bytes * alive[i], blocks: piece.blocks * alive[i]};
      if (piece.tag.operator.includes("arena")) parts.push({...holder, address: piece.address});
      else holders.push(holder);
    });
    const arenas = [], plans = this.plans.filter((plan) => plan.steps.length);
    for (const part of parts.sort((a, b) => a.address - b.address)) {  // parts of one arena lie one behind the other
      if (arenas.at(-1)?.end !== part.address) arenas.push({bytes: 0, parts: []});
      const arena = arenas.at(-1);
      arena.parts.push(part), arena.bytes += part.bytes, arena.end = part.address + part.bytes;
    }
    for (const arena of arenas) {
      const plan = plans.find((each) => each.arena_bytes === arena.bytes) ||
        (plans.length === 1 && arenas.length === 1 && plans[0].arena_bytes < arena.bytes && plans[0]);
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

  placeOf({span, events}) { return span.x0 + (span.x1 - span.x0) * (events + 0.5) / (span.pattern.codes.length + 1); }

  momentAt(x) {
    const span = this.spanAt(x), count = span.pattern.codes.length;
    let events = Math.floor((count + 1) * (x - span.x0) / (span.x1 - span.x0));
    events = Math.min(Math.max(events, 0), count);
    while (events > 0 && span.pattern.codes[events - 1] & 2) ++events;  // within one moment
    return {span, events};
  }

  // Points between x0 and x1: event by event where they are few, else the highest moment of each span or
  // of several neighbours. [x, row] pairs.
  points(x0, x1, most) {
    if (!this.spans.length) return [];
    const first = this.spanAt(x0).index, last = this.spanAt(x1).index, points = [];
    const count = last - first + 1, bucket = Math.ceil(count / most);
    let events = 0;
    for (let i = first; i <= last && events <= 4 * most; ++i) events += this.spans[i].pattern.codes.length;
    for (let i = first; i <= last; i += bucket) {
      const group = this.spans.slice(i, Math.min(i + bucket, last + 1)), span = group[0];
      if (bucket > 1 || events > 4 * most || !span.pattern.isWhole) {
        const top = group.reduce((a, b) => (allocatedOf(b.peak) > allocatedOf(a.peak) ? b : a)).peak;
        const row = [...top];
        row[kReserved] = Math.max(...group.map((each) => each.peak[kReserved]));
        points.push([span.x0, row]);
        continue;
      }
      const codes = span.pattern.codes, row = [...span.start];
      points.push([span.x0, [...row]]);
      codes.forEach((code, e) => {
        this.change(row, [code]);
        if (!(code & 2)) points.push([span.x0 + (span.x1 - span.x0) * (e + 1) / (codes.length + 1), [...row]]);
      });
    }
    const end = this.spans[last];
    points.push([end.x1, end.index + 1 < this.spans.length ? this.spans[end.index + 1].start : this.end]);
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
