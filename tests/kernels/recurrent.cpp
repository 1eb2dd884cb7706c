#include "ebb/core/kernels/recurrent.h"

#include <array>
#include <cmath>

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
