#include <array>

#include "ebb/core/ops/update.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using detail::Gate;
using Call = std::function<Tensor(const Tensors&)>;

const SampleInput kArray{{4, 3}}, kRate{{}, Values::rate}, kCount{{}, Values::count},
    kReady{{}, Values::ready}, kNotReady{{}, Values::not_ready}, kMoment{{4, 3}, Values::positive};

Sample sample(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs, Call call) {
  return {.op = &op,
          .name = std::string(op.name) + how,
          .inputs = std::move(inputs),
          .call = [call = std::move(call)](const Tensors& in) -> Tensors { return {call(in)}; },
          .order = 0};
}

// The inputs, and with a gate two more.
std::vector<SampleInput> gated(std::vector<SampleInput> inputs, const SampleInput* ready) {
  if (ready) {
    inputs.push_back(*ready);
    inputs.push_back(kCount);
  }
  return inputs;
}

Gate gate_of(const Tensors& in, std::size_t first) {
  if (in.size() <= first) return {};
  return {in[first], in[first + 1]};
}

void add_optimizer_samples(std::vector<Sample>& samples, const std::string& how,
                           const SampleInput* ready) {
  samples.push_back(
      sample(sgd_update_op, how, gated({kArray, kArray, kRate}, ready), [](const Tensors& in) {
        return detail::sgd_update(in[0], {}, in[1], in[2], {.weight_decay = 0.1}, gate_of(in, 3),
                                  {});
      }));
  for (const int nesterov : {0, 1})
    samples.push_back(sample(
        sgd_momentum_update_op, (nesterov ? ", Nesterov" : ", momentum") + how,
        gated({kArray, kArray, kArray, kRate}, ready), [nesterov](const Tensors& in) {
          return detail::sgd_update(in[0], in[1], in[2], in[3],
                                    {.momentum = 0.9, .nesterov = nesterov}, gate_of(in, 4), {});
        }));
  for (const int decoupled : {0, 1})
    samples.push_back(sample(adam_update_op, (decoupled ? ", AdamW" : "") + how,
                             gated({kArray, kArray, kMoment, kArray, kCount, kRate}, ready),
                             [decoupled](const Tensors& in) {
                               return detail::adam_update(
                                   in[0], in[1], in[2], in[3], in[4], in[5],
                                   {.weight_decay = 0.1, .decoupled = decoupled}, gate_of(in, 6),
                                   {});
                             }));
}

}  // namespace

void add_update_samples(std::vector<Sample>& samples, DType) {
  samples.push_back(sample(assign_op, "", {kArray, kArray},
                           [](const Tensors& in) { return assign(in[0], in[1]); }));
  samples.push_back(sample(assign_op, ", a number", {kArray},
                           [](const Tensors& in) { return assign(in[0], 0.25); }));
  samples.push_back(sample(add_assign_op, "", {kArray, kArray},
                           [](const Tensors& in) { return add_assign(in[0], in[1]); }));
  add_optimizer_samples(samples, "", nullptr);
  add_optimizer_samples(samples, ", ready", &kReady);
  add_optimizer_samples(samples, ", not ready", &kNotReady);

  samples.push_back(sample(schedule_op, ", cosine", {kCount}, [](const Tensors& in) {
    return detail::schedule(in[0], {.kind = ScheduleAttributes::cosine, .warm_up = 3, .steps = 20},
                            {});
  }));
  samples.push_back(sample(increment_op, "", {kCount},
                           [](const Tensors& in) { return detail::increment(in[0], 2, {}, {}); }));
  for (const SampleInput& ready : {kReady, kNotReady})
    samples.push_back(sample(
        increment_op, ready.values == Values::ready ? ", ready" : ", not ready", {kCount, ready},
        [](const Tensors& in) { return detail::increment(in[0], 2, in[1], {}); }));
  samples.push_back(sample(add_count_op, "", {kCount, kCount},
                           [](const Tensors& in) { return detail::add_count(in[0], in[1], {}); }));
  samples.push_back(sample(at_least_op, "", {kCount},
                           [](const Tensors& in) { return detail::at_least(in[0], 5, {}); }));
  samples.push_back(sample(accumulate_op, "", {kArray, kArray, kCount}, [](const Tensors& in) {
    return detail::accumulate(in[0], in[1], in[2], {});
  }));
  for (const SampleInput& ready : {kReady, kNotReady}) {
    samples.push_back(sample(clear_if_op, ready.values == Values::ready ? ", ready" : ", not ready",
                             {kArray, ready},
                             [](const Tensors& in) { return detail::clear_if(in[0], in[1], {}); }));
    samples.back().any_shape = true;
    samples.push_back(
        sample(assign_if_op, ready.values == Values::ready ? ", ready" : ", not ready",
               {kArray, kArray, ready},
               [](const Tensors& in) { return detail::assign_if(in[0], in[1], in[2], {}); }));
  }
  samples.push_back(sample(with_updates_op, "", {{{}}, kCount}, [](const Tensors& in) {
    const Tensor updates[] = {detail::increment(in[1], 1, {}, {})};
    return detail::with_updates(in[0], updates, {});
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
