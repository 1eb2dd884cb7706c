#include "ebb/core/kernels/recurrent.h"

#include <array>
#include <cmath>

#include "ebb/core/kernels/philox.h"
#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

struct Case {
  std::int64_t batch = 2, time = 3, in = 2, hidden = 3, layers = 1;
  bool state = false;
  double dropout = 0;
  RecurrentCell cell = RecurrentCell::lstm;

  bool is_lstm() const { return cell == RecurrentCell::lstm; }
  std::int64_t columns() const { return (is_lstm() ? 4 : 3) * hidden; }
  std::size_t states() const { return is_lstm() ? 2 : 1; }
  std::size_t reserve() const { return states() + 1; }  // among the outputs
  std::string text() const {
    return (is_lstm() ? "lstm " : "gru ") + std::to_string(batch) + "x" + std::to_string(time) +
           "x" + std::to_string(in) + " hidden " + std::to_string(hidden) + " layers " +
           std::to_string(layers) + (state ? " state" : "") + " dropout " + std::to_string(dropout);
  }
};

RecurrentAttributes attributes(const Case& c) {
  return {.layers = static_cast<std::int32_t>(c.layers),
          .hidden = static_cast<std::int32_t>(c.hidden),
          .has_state = c.state,
          .dropout = c.dropout,
          .cell = c.cell};
}

std::vector<Values> inputs(const Case& c, DType type, unsigned seed) {
  Dice dice(seed);
  const double scale = 1 / std::sqrt(static_cast<double>(c.hidden));
  std::vector<Values> list;
  list.push_back(dice.tensor(type, {c.batch, c.time, c.in}, -2, 2));
  if (c.state)
    for (std::size_t i = 0; i < c.states(); ++i)
      list.push_back(dice.tensor(type, {c.layers, c.batch, c.hidden}));
  if (c.dropout > 0) {
    list.push_back(values(DType::i64, {2}, [](std::int64_t i) { return i == 0 ? 11 : 40; }));
  }
  for (std::int64_t l = 0; l < c.layers; ++l) {
    list.push_back(dice.tensor(type, {l == 0 ? c.in : c.hidden, c.columns()}, -scale, scale));
    list.push_back(dice.tensor(type, {c.hidden, c.columns()}, -scale, scale));
    list.push_back(dice.tensor(type, {4 * c.hidden}, -scale, scale));
  }
  return list;
}

Call forward(const Case& c, std::vector<Values> in) {
  Call call{.kernel = cpu::recurrent,
            .memory = cpu::recurrent_memory,
            .attributes = attributes(c),
            .inputs = std::move(in)};
  const DType type = call.inputs[0].spec().dtype;
  std::vector<Spec> specs;
  for (const Values& v : call.inputs) specs.push_back(v.spec());
  const auto needs =
      cpu::recurrent_memory({.inputs = specs, .outputs = {}, .attributes = &call.attributes});
  call.outputs = {{type, {c.batch, c.time, c.hidden}}};
  call.outputs.resize(c.reserve(), {type, {c.layers, c.batch, c.hidden}});
  call.outputs.push_back({DType::u8, {static_cast<std::int64_t>(needs.reserve_bytes)}});
  return call;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Reference {
  std::vector<double> sequence, hidden, cell;
  const std::vector<double>& operator[](std::size_t i) const {
    return i == 0 ? sequence : i == 1 ? hidden : cell;
  }
};

// The formulas of recurrent.h, one number at a time.
Reference reference(const Case& c, const std::vector<Values>& in) {
  std::size_t next = 0;
  const std::size_t x = next++, h0 = next, c0 = next + 1;
  if (c.state) next += c.states();
  const std::size_t draw = next;
  if (c.dropout > 0) ++next;
  Reference out;
  const auto at = [&](std::int64_t b, std::int64_t t, std::int64_t j, std::int64_t width) {
    return static_cast<std::size_t>((b * c.time + t) * width + j);
  };
  std::vector<double> below = in[x].list();
  std::int64_t width = c.in;
  for (std::int64_t l = 0; l < c.layers; ++l, next += 3) {
    if (l > 0 && c.dropout > 0)
      for (std::size_t i = 0; i < below.size(); ++i) {
        const auto word = Philox::word(static_cast<std::uint64_t>(in[draw].at(0)),
                                       static_cast<std::uint64_t>(in[draw].at(1)),
                                       static_cast<std::uint64_t>(l * kRecurrentLayerElements) + i);
        below[i] =
            static_cast<double>(unit_interval(word)) >= c.dropout ? below[i] / (1 - c.dropout) : 0;
      }
    std::vector<double> above(static_cast<std::size_t>(c.batch * c.time * c.hidden));
    for (std::int64_t b = 0; b < c.batch; ++b) {
      std::vector<double> h(static_cast<std::size_t>(c.hidden)), s = h;
      for (std::int64_t j = 0; j < c.hidden && c.state; ++j) {
        h[static_cast<std::size_t>(j)] = in[h0].at((l * c.batch + b) * c.hidden + j);
        if (c.is_lstm())
          s[static_cast<std::size_t>(j)] = in[c0].at((l * c.batch + b) * c.hidden + j);
      }
      for (std::int64_t t = 0; t < c.time; ++t) {
        const std::vector<double> before = h;
        for (std::int64_t j = 0; j < c.hidden; ++j) {
          double a[4], q[4] = {};  // with the bias; what R adds
          for (std::int64_t g = 0; g < 4; ++g) {
            const std::int64_t column = g * c.hidden + j;
            a[g] = in[next + 2].at(column);
            if (column >= c.columns()) continue;
            for (std::int64_t i = 0; i < width; ++i)
              a[g] += below[at(b, t, i, width)] * in[next].at(i * c.columns() + column);
            for (std::int64_t i = 0; i < c.hidden; ++i)
              q[g] +=
                  before[static_cast<std::size_t>(i)] * in[next + 1].at(i * c.columns() + column);
          }
          double &cell = s[static_cast<std::size_t>(j)], &state = h[static_cast<std::size_t>(j)];
          if (c.is_lstm()) {
            cell = sigmoid(a[1] + q[1]) * cell + sigmoid(a[0] + q[0]) * std::tanh(a[2] + q[2]);
            state = sigmoid(a[3] + q[3]) * std::tanh(cell);
          } else {
            const double z = sigmoid(a[1] + q[1]);
            state = z * state + (1 - z) * std::tanh(a[2] + sigmoid(a[0] + q[0]) * (q[2] + a[3]));
          }
          above[at(b, t, j, c.hidden)] = h[static_cast<std::size_t>(j)];
        }
      }
      out.hidden.insert(out.hidden.end(), h.begin(), h.end());
      out.cell.insert(out.cell.end(), s.begin(), s.end());
    }
    below = above;
    width = c.hidden;
  }
  out.sequence = below;
  return out;
}

Case random_case(Dice& dice, std::int64_t largest) {
  Case c;
  c.cell = dice.integer(0, 1) == 1 ? RecurrentCell::gru : RecurrentCell::lstm;
  c.batch = dice.integer(1, largest);
  c.time = dice.integer(1, largest + 2);
  c.in = dice.integer(1, largest);
  c.hidden = dice.integer(1, largest);
  c.layers = dice.integer(1, 3);
  c.state = dice.integer(0, 1) == 1;
  c.dropout = dice.integer(0, 1) == 1 ? 0.4 : 0;
  return c;
}

Call backward(const Case& c, Call& run, const std::vector<Values>& results, int d_given,
              std::uint32_t wants, unsigned seed) {
  RecurrentAttributes a = attributes(c);
  if (!c.is_lstm()) d_given &= 3;
  a.d_given = d_given;
  Call call{.kernel = cpu::recurrent_backward,
            .memory = cpu::recurrent_backward_memory,
            .attributes = a,
            .inputs = {results[c.reserve()], results[0]}};
  call.inputs.insert(call.inputs.end(), run.inputs.begin(), run.inputs.end());
  Dice dice(seed);
  for (std::size_t i = 0; i < c.reserve(); ++i)
    if ((d_given >> i & 1) != 0)
      call.inputs.push_back(dice.tensor(results[i].spec().dtype, results[i].spec().shape));
  std::size_t output = 0;
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    if (run.inputs[i].spec().dtype == DType::i64) continue;
    call.outputs.push_back(run.inputs[i].spec());
    if ((wants >> i & 1) == 0) call.without_output |= std::uint64_t{1} << output;
    ++output;
  }
  return call;
}

}  // namespace

TEST_CASE(
    "The recurrent kernel computes the formulas of its contract, with and without a reserve") {
  Dice dice(1);
  for (unsigned seed = 0; seed < 60; ++seed) {
    Case c = random_case(dice, seed < 40 ? 6 : 40);
    if (seed >= 56)
      c = {.batch = 70,
           .time = 11,
           .in = 5,
           .hidden = 150,
           .layers = seed % 2 + 1,
           .state = true,
           .cell = seed < 58 ? RecurrentCell::lstm : RecurrentCell::gru};
    INFO(c.text());
    for (DType type : {DType::f32, DType::f64}) {
      Call call = forward(c, inputs(c, type, seed));
      const Reference expected = reference(c, call.inputs);
      const auto kept = call.run();
      CHECK(distance(kept[0].list(), expected.sequence) < tolerance(type));
      CHECK(distance(kept[1].list(), expected.hidden) < tolerance(type));
      if (c.is_lstm()) CHECK(distance(kept[2].list(), expected.cell) < tolerance(type));
      call.without_output = std::uint64_t{1} << c.reserve();
      const auto bare = call.run();
      for (std::size_t i = 0; i < c.reserve(); ++i) CHECK(bare[i].same_bits(kept[i]));
      call.without_output |= 1;
      CHECK(call.run()[1].same_bits(kept[1]));
    }
  }
}

TEST_CASE("The recurrent kernel hands the initial state on when there are no steps") {
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    const Case c = {
        .batch = 2, .time = 0, .in = 3, .hidden = 4, .layers = 2, .state = true, .cell = cell};
    INFO(c.text());
    Call call = forward(c, inputs(c, DType::f32, 1));
    const auto out = call.run();
    Call gradient = backward(c, call, out, 7, ~0u, 3);
    const auto d = gradient.run();
    for (std::size_t i = 1; i <= c.states(); ++i) {
      CHECK(out[i].same_bits(call.inputs[i]));
      CHECK(d[i].same_bits(gradient.inputs[gradient.inputs.size() - 1 - c.states() + i]));
    }
    for (std::size_t i = 1 + c.states(); i < d.size(); ++i)
      for (double x : d[i].list()) CHECK(x == 0);
  }
}

TEST_CASE("The gradients of the recurrent kernel are finite differences of its contract") {
  Dice dice(7);
  for (unsigned seed = 0; seed < 66; ++seed) {
    Case c = random_case(dice, 4);
    if (seed >= 64)
      c = {.batch = 1, .time = 600, .cell = seed == 64 ? RecurrentCell::gru : RecurrentCell::lstm};
    else if (seed >= 60)  // more than the 512 rows that backward takes at a time
      c = {.batch = 70 + 60 * (seed % 2),
           .time = 9,
           .layers = seed / 2 % 2 + 1,
           .state = true,
           .dropout = seed % 3 == 0 ? 0.4 : 0,
           .cell = seed % 4 < 2 ? RecurrentCell::gru : RecurrentCell::lstm};
    const int d_given = static_cast<int>(seed % 7 + 1);
    INFO(c.text() << " d_given " << d_given);
    Call run = forward(c, inputs(c, DType::f64, seed));
    const auto results = run.run();
    Call call = backward(c, run, results, d_given, ~0u, seed + 100);
    const auto gradients = call.run();
    // L = the given gradients times the outputs they belong to.
    const auto loss = [&] {
      const Reference r = reference(c, run.inputs);
      double sum = 0;
      std::size_t next = run.inputs.size() + 2;
      for (std::size_t i = 0; i < c.reserve(); ++i) {
        if ((d_given >> i & 1) == 0) continue;
        for (std::size_t j = 0; j < r[i].size(); ++j)
          sum += call.inputs[next].at(static_cast<std::int64_t>(j)) * r[i][j];
        ++next;
      }
      return sum;
    };
    std::size_t output = 0;
    for (Values& input : run.inputs) {
      if (input.spec().dtype == DType::i64) continue;
      std::vector<double> expected, got;
      for (int sample = 0; sample < 6; ++sample) {
        const std::int64_t i = dice.integer(0, input.elements() - 1);
        const double value = input.at(i), step = 1e-5;
        input.set(i, value + step);
        const double above = loss();
        input.set(i, value - step);
        const double below = loss();
        input.set(i, value);
        expected.push_back((above - below) / (2 * step));
        got.push_back(gradients[output].at(i));
      }
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(std::abs(got[i] - expected[i]) < 1e-8 + 1e-6 * std::abs(expected[i]));
      ++output;
    }
  }
}

TEST_CASE(
    "Gradients of the recurrent kernel that are not wanted change nothing about those that are") {
  Dice dice(9);
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Case c = random_case(dice, 20);
    INFO(c.text());
    Call run = forward(c, inputs(c, DType::f32, seed));
    const auto results = run.run();
    const int d_given = static_cast<int>(seed % 8);
    const auto all = backward(c, run, results, d_given, ~0u, seed).run();
    const auto wants = static_cast<std::uint32_t>(dice.integer(0, (1 << run.inputs.size()) - 1));
    const auto some = backward(c, run, results, d_given, wants, seed).run();
    std::size_t output = 0;
    for (std::size_t i = 0; i < run.inputs.size(); ++i) {
      if (run.inputs[i].spec().dtype == DType::i64) continue;
      if ((wants >> i & 1) != 0) CHECK(some[output].same_bits(all[output]));
      ++output;
    }
  }
}

TEST_CASE("Gradients of long and wide stacks in f32 are those in f64") {
  const Case cases[] = {
      {.batch = 32, .time = 40, .in = 20, .hidden = 150, .layers = 2, .state = true},
      {.batch = 130, .time = 9, .in = 1, .hidden = 33, .layers = 1},
      {.batch = 1, .time = 600, .in = 3, .hidden = 17, .layers = 2, .dropout = 0.2},
      {.batch = 600, .time = 3, .in = 7, .hidden = 24, .layers = 2},
      {.batch = 32,
       .time = 40,
       .in = 20,
       .hidden = 150,
       .layers = 2,
       .state = true,
       .cell = RecurrentCell::gru}};
  for (const Case& c : cases) {
    INFO(c.text());
    std::vector<Values> in32 = inputs(c, DType::f32, 5), in64;
    for (const Values& v : in32)
      in64.push_back(
          v.spec().dtype == DType::i64
              ? v
              : values(DType::f64, v.spec().shape, [&](std::int64_t i) { return v.at(i); }));
    Call run32 = forward(c, in32), run64 = forward(c, in64);
    const auto out32 = run32.run(), out64 = run64.run();
    Call back32 = backward(c, run32, out32, 7, ~0u, 2),
         back64 = backward(c, run64, out64, 7, ~0u, 2);
    for (std::size_t i = back32.inputs.size() - c.reserve(); i < back32.inputs.size(); ++i)
      for (std::int64_t j = 0; j < back64.inputs[i].elements(); ++j)
        back64.inputs[i].set(j, back32.inputs[i].at(j));
    const auto d32 = back32.run(), d64 = back64.run();
    for (std::size_t i = 0; i < d32.size(); ++i)
      CHECK(distance(d32[i].list(), d64[i].list()) < 3e-6);
  }
}

TEST_CASE(
    "The recurrent kernel's backward pass that writes over the reserve gives the same bits in "
    "less") {
  Dice dice(11);
  for (unsigned seed = 0; seed < 80; ++seed) {
    Case c = random_case(dice, seed < 60 ? 8 : 40);
    if (seed >= 70)  // several chunks, more features than units and fewer
      c = {.batch = 90,
           .time = 20,
           .in = seed % 2 == 0 ? 5 : 40,
           .hidden = 33,
           .layers = seed % 3 + 1,
           .state = seed % 4 < 2,
           .dropout = seed >= 75 ? 0.4 : 0,
           .cell = seed / 2 % 2 == 0 ? RecurrentCell::gru : RecurrentCell::lstm};
    if (seed % 10 == 0) c.time = 0;
    INFO(c.text());
    for (DType type : {DType::f32, DType::f64}) {
      Call run = forward(c, inputs(c, type, seed));
      const auto results = run.run();
      const auto wants = static_cast<std::uint32_t>(dice.integer(0, (1 << run.inputs.size()) - 1));
      const int d_given = static_cast<int>(seed % 8);
      Call copies = backward(c, run, results, d_given, wants, seed);
      Call destroys = copies;
      destroys.destroyed = {kRecurrentBackwardReserve};
      const auto expected = copies.run();
      const auto got = destroys.run();
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i].same_bits(expected[i]));
      CHECK(copies.inputs[kRecurrentBackwardReserve].same_bits(results[c.reserve()]));
      for (std::size_t i = 1; i < copies.inputs.size(); ++i)
        CHECK(destroys.inputs[i].same_bits(copies.inputs[i]));
      if (c.time > 0) CHECK(destroys.workspace_bytes < copies.workspace_bytes);
    }
  }
}

TEST_CASE("The workspace of a stack does not grow with its sequence") {
  const RecurrentCell cell = GENERATE(RecurrentCell::lstm, RecurrentCell::gru);
  Case c = {.batch = 32, .time = 64, .in = 8, .hidden = 48, .layers = 2, .cell = cell};
  const auto workspaces = [&](std::int64_t time) {
    c.time = time;
    Call run = forward(c, inputs(c, DType::f32, 1));
    const auto out = run.run();
    Call back = backward(c, run, out, 1, ~0u, 1);
    back.run();
    const std::size_t copying = back.workspace_bytes;
    back.destroyed = {kRecurrentBackwardReserve};
    back.run();
    return std::array{run.workspace_bytes, copying, back.workspace_bytes};
  };
  CHECK(workspaces(64) == workspaces(200));
}

TEST_CASE("The recurrent kernel gives the same bits for any number of threads") {
  const Case cases[] = {
      {.batch = 32, .time = 20, .in = 16, .hidden = 256, .layers = 1, .state = true},
      {.batch = 100, .time = 8, .in = 3, .hidden = 140, .layers = 4, .dropout = 0.3},
      {.batch = 100,
       .time = 8,
       .in = 3,
       .hidden = 140,
       .layers = 2,
       .state = true,
       .dropout = 0.3,
       .cell = RecurrentCell::gru}};
  for (const Case& c : cases) {
    INFO(c.text());
    Call run = forward(c, inputs(c, DType::f32, 3));
    check_threads_agree(run);
    CHECK(distance(run.run()[0].list(), reference(c, run.inputs).sequence) < 1e-6);
    check_threads_agree(backward(c, run, run.run(), 7, ~0u, 4));
  }
}
