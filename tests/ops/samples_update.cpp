#include <array>

#include "ebb/core/ops/update.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Call = std::function<Tensor(const Tensors&)>;

const SampleInput kArray{{4, 3}}, kCount{{}, Values::count}, kReady{{}, Values::ready},
    kNotReady{{}, Values::not_ready};

Sample sample(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs, Call call) {
  return {.op = &op,
          .name = std::string(op.name) + how,
          .inputs = std::move(inputs),
          .call = [call = std::move(call)](const Tensors& in) -> Tensors { return {call(in)}; },
          .order = 0};
}

}  // namespace

void add_update_samples(std::vector<Sample>& samples) {
  samples.push_back(sample(assign_op, "", {kArray, kArray},
                           [](const Tensors& in) { return assign(in[0], in[1]); }));
  samples.push_back(sample(assign_op, ", a number", {kArray},
                           [](const Tensors& in) { return assign(in[0], 0.25); }));
  samples.push_back(sample(add_assign_op, "", {kArray, kArray},
                           [](const Tensors& in) { return add_assign(in[0], in[1]); }));
  samples.push_back(sample(increment_op, "", {kCount},
                           [](const Tensors& in) { return detail::increment(in[0], 2); }));
  for (const SampleInput& ready : {kReady, kNotReady})
    samples.push_back(sample(
        increment_op, ready.values == Values::ready ? ", ready" : ", not ready", {kCount, ready},
        [](const Tensors& in) { return detail::increment(in[0], 2, in[1]); }));
  samples.push_back(sample(add_count_op, "", {kCount, kCount},
                           [](const Tensors& in) { return detail::add_count(in[0], in[1]); }));
  samples.push_back(sample(at_least_op, "", {kCount},
                           [](const Tensors& in) { return detail::at_least(in[0], 5); }));
  for (const SampleInput& ready : {kReady, kNotReady}) {
    samples.push_back(sample(clear_if_op, ready.values == Values::ready ? ", ready" : ", not ready",
                             {kArray, ready},
                             [](const Tensors& in) { return detail::clear_if(in[0], in[1]); }));
    samples.back().any_shape = true;
    samples.push_back(
        sample(assign_if_op, ready.values == Values::ready ? ", ready" : ", not ready",
               {kArray, kArray, ready},
               [](const Tensors& in) { return detail::assign_if(in[0], in[1], in[2]); }));
  }
  samples.push_back(sample(with_updates_op, "", {{{}}, kCount}, [](const Tensors& in) {
    const Tensor updates[] = {detail::increment(in[1], 1)};
    return detail::with_updates(in[0], updates);
  }));
  std::vector<SampleInput> loss_and_counts(71, kCount);
  loss_and_counts[0] = {{}};
  samples.push_back(sample(with_updates_op, ", of many", loss_and_counts, [](const Tensors& in) {
    Tensors updates;
    for (std::size_t i = 1; i < in.size(); ++i)
      updates.push_back(detail::increment(in[i], 1, {}, {}));
    return detail::with_updates(in[0], {updates.data(), updates.size()}, {});
  }));
  for (std::size_t i = samples.size() - 2; i < samples.size(); ++i) {
    samples[i].order = 2;
    samples[i].state = from(1);
    samples[i].any_dtype = samples[i].any_shape = true;
  }
}

}  // namespace ebb::tests
