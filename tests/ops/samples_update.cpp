
#include "ebb/core/kernels/update.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/update.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

const SampleInput kArray{{4, 3}}, kCount{{}, Values::count}, kReady{{}, Values::ready},
    kNotReady{{}, Values::not_ready};

// Reference of an update: element(x[i], i) for each element of the first input.
template <class Element>
Arrays updated(const Application& a, const Element& element) {
  Array x = a[0];
  for (std::int64_t i = 0; i < x.elements(); ++i) x[i] = element(x[i], i);
  return {x};
}

}  // namespace

void update_family(std::vector<Sample>& samples, References& references, DType) {
  const auto add = [&](const OpDef& op, const char* how, const std::vector<SampleInput>& inputs,
                       std::function<Tensors(const Tensors&)> call) {
    samples.push_back(sample_of(op, how, inputs, std::move(call), kNoGradient));
  };
  add(assign_op, "", {kArray, kArray}, EBB_CALL(assign(in[0], in[1])));
  add(assign_op, "a number", {kArray}, EBB_CALL(assign(in[0], 0.25)));
  add(add_assign_op, "", {kArray, kArray}, EBB_CALL(add_assign(in[0], in[1])));
  const auto add_slice = [&](const OpDef& op, const char* how, std::vector<SampleInput> inputs,
                             int axis, const Operand& begin) {
    const auto first = [at = begin.number()](const Tensors& in) -> Operand {
      if (in.size() > 2) return in[2];
      return at;
    };
    add(op, how, std::move(inputs),
        EBB_CALL(assign_slice(copy(in[0]), first(in), in[1], {.axis = axis})));
    samples.back().any_dtype = true;
    samples.back().order = 2;
    samples.back().state = {};
  };
  add_slice(assign_slice_op, "rows", {{{5, kOpen}}, {{2, kOpen}}}, 0, 2);
  add_slice(assign_slice_op, "from the end", {{{kOpen, 6, 2}}, {{kOpen, 3, 2}}}, 1, -4);
  add_slice(assign_slice_op, "up to the end", {{{kOpen, 6}}, {{kOpen, 2}}}, 1, -2);
  add_slice(assign_slice_op, "an open part of one axis", {{{kOpen}}, {{kOpen}}}, 0, 0);
  const SampleInput begin{{}, Values::long_labels};
  add_slice(assign_slice_at_op, "a middle axis", {{{kOpen, 6, 2}}, {{kOpen, 2, 2}}, begin}, 1, 0);
  add_slice(assign_slice_at_op, "the last axis", {{{kOpen, 7}}, {{kOpen, 3}}, begin}, -1, 0);
  add(increment_op, "", {kCount}, EBB_CALL(detail::increment(in[0], 2)));
  add(add_count_op, "", {kCount, kCount}, EBB_CALL(detail::add_count(in[0], in[1])));
  add(at_least_op, "", {kCount}, EBB_CALL(detail::at_least(in[0], 5)));
  for (const SampleInput& gate : {kReady, kNotReady}) {
    const char* const how = gate.values == Values::ready ? "ready" : "not ready";
    add(increment_op, how, {kCount, gate}, EBB_CALL(detail::increment(in[0], 2, in[1])));
    add(assign_if_op, how, {kArray, kArray, gate},
        EBB_CALL(detail::assign_if(in[0], in[1], in[2])));
    add(clear_if_op, how, {kArray, gate}, EBB_CALL(detail::clear_if(in[0], in[1])));
    samples.back().any_shape = true;
  }
  std::vector<SampleInput> loss_and_counts(71, kCount);
  loss_and_counts[0] = {{}};
  add(with_updates_op, "", {{{}}, kCount}, [](const Tensors& in) -> Tensors {
    const Tensor updates[] = {detail::increment(in[1], 1)};
    return {detail::with_updates(in[0], updates)};
  });
  add(with_updates_op, "of many", loss_and_counts, [](const Tensors& in) -> Tensors {
    Tensors updates;
    for (std::size_t i = 1; i < in.size(); ++i)
      updates.push_back(detail::increment(in[i], 1, {}, {}));
    return {detail::with_updates(in[0], {updates.data(), updates.size()}, {})};
  });
  for (std::size_t i = samples.size() - 2; i < samples.size(); ++i) {
    samples[i].order = 2;
    samples[i].state = from(1);
    samples[i].any_dtype = samples[i].any_shape = true;
  }

  references.add(assign_op, [](const Application& a) {
    return updated(a, [&](double, std::int64_t i) { return a[1][i]; });
  });
  const auto write = [](const Application& a, std::int64_t begin) -> Arrays {
    const auto& part = a.attribute<AssignSliceAttributes>();
    const int axis = static_cast<int>(part.axis);
    Array x = a[0];
    for_each_index(a[1].shape, [&](Index index) {
      const double value = a[1][position(a[1].shape, index)];
      index[static_cast<std::size_t>(axis)] += begin < 0 ? begin + x.shape[axis] : begin;
      x[position(x.shape, index)] = value;
    });
    return {x};
  };
  references.add(assign_slice_op, [=](const Application& a) {
    return write(a, a.attribute<AssignSliceAttributes>().begin);
  });
  references.add(assign_slice_at_op, [=](const Application& a) {
    return write(a, static_cast<std::int64_t>(a[2][0]));
  });
  references.add(assign_if_op, [](const Application& a) {
    return updated(a, [&](double x, std::int64_t i) { return a[2][0] != 0 ? a[1][i] : x; });
  });
  references.add(add_assign_op, [](const Application& a) {
    return updated(a, [&](double x, std::int64_t i) { return x + a[1][i]; });
  });
  references.add(clear_if_op, [](const Application& a) {
    return updated(a, [&](double x, std::int64_t) { return a[1][0] != 0 ? 0 : x; });
  });
  references.add(add_count_op, [](const Application& a) {
    return updated(a, [&](double n, std::int64_t) { return n + a[1][0]; });
  });
  references.add(increment_op, [](const Application& a) {
    const auto& attributes = a.attribute<CountAttributes>();
    const bool open = !attributes.gated || a[1][0] != 0;
    const double by = open ? static_cast<double>(attributes.value) : 0;
    return updated(a, [&](double n, std::int64_t) { return n + by; });
  });
  references.add(at_least_op, [](const Application& a) -> Arrays {
    Array out{Shape{}};
    out[0] = a[0][0] >= static_cast<double>(a.attribute<CountAttributes>().value);
    return {out};
  });
  references.add(with_updates_op, [](const Application& a) -> Arrays { return {a[0]}; });
}

}  // namespace ebb::tests
