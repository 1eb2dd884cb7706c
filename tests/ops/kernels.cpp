// Kernels called directly: they do what their memory rule declares and nothing else.
#include <set>

#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/heap.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests {
namespace {

// Calls body for every sample whose operator has a kernel and is wanted, in all floating dtypes and
// several batch sizes.
template <class Wanted, class Body>
void for_every_kernel(const Wanted& wanted, const Body& body) {
  for (const DType dtype : kFloating)
    for (const Sample& sample : all_samples(dtype)) {
      if (sample.op->view || !wanted(*sample.op)) continue;
      for (const std::int64_t batch : batches(dtype, {0, 1, 3, 17})) {
        INFO(sample.name << ", " << name(dtype) << ", batch of " << batch);
        body(KernelCase(sample, dtype, batch));
      }
    }
}

constexpr std::byte kZero{0}, kNoise{0xEE};

}  // namespace

TEST_CASE("A kernel writes all of its outputs, nothing else, and takes nothing from the heap",
          "[concurrent]") {
  // A library computes their products and may take scratch of its own to pack matrices.
  const std::set<const OpDef*> packing = {&matmul_op,
                                          &dense_op,
                                          &dense_activated_op,
                                          &dense_backward_op,
                                          &lstm_op,
                                          &lstm_backward_op,
                                          &gru_op,
                                          &gru_backward_op,
                                          &conv2d_op,
                                          &conv2d_input_gradient_op,
                                          &attention_op,
                                          &attention_backward_op,
                                          &conv2d_weight_gradient_op,
                                          &conv_transpose2d_op};
  for_every_kernel(
      [](const OpDef&) { return true; },
      [&](const KernelCase& kernel) {
        const auto first = kernel.run(kZero);    // the first call may make a thread's state
        const auto second = kernel.run(kNoise);  // old contents of memory must not matter
        CHECK(first.stayed_inside);
        CHECK(second.stayed_inside);
        for (std::size_t i = 0; i < kernel.outputs.size(); ++i)  // opaque outputs may have gaps
          if (!kernel.op->gradient_outputs.has(i)) CHECK((first.outputs[i] == second.outputs[i]));
        CHECK((first.inputs == second.inputs));
        for (std::size_t i = 0; i < kernel.inputs.size(); ++i)
          if (!kernel.op->updates.has(i) && !kernel.op->shape_only.has(i))
            CHECK((second.inputs[i] == kernel.input_values[i]));
        if (HeapCount::works && !packing.count(kernel.op)) CHECK(second.allocations == 0);
      });
}

TEST_CASE("A kernel gives the same result in memory of its own and in that of an input") {
  for_every_kernel([](const OpDef& op) { return !op.takes_over.empty(); },
                   [](const KernelCase& kernel) {
                     const auto own = kernel.run(kNoise);
                     for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
                       if (!kernel.op->takes_over.has(i)) continue;
                       if (kernel.inputs[i].bytes() != kernel.outputs[0].bytes()) continue;
                       INFO("input " << i);
                       const auto shared = kernel.run(kNoise, static_cast<int>(i));
                       CHECK(shared.stayed_inside);
                       CHECK((shared.outputs == own.outputs));
                     }
                   });
}

TEST_CASE("A kernel that may destroy inputs gives the same result, in no more memory") {
  for_every_kernel(
      [](const OpDef& op) { return !op.destroys.empty(); },
      [](const KernelCase& kernel) {
        const IndexSet all = named(kernel.op->destroys, kernel.inputs.size());
        if (all.empty()) return;
        const auto copies = kernel.run(kNoise);
        for (std::size_t i = 0; i < kernel.inputs.size(); ++i) {
          if (!all.has(i)) continue;
          for (const IndexSet& destroyed : {IndexSet{i}, all}) {
            INFO("input " << i);
            const auto destroys = kernel.run(kNoise, -1, {}, destroyed);
            CHECK(destroys.stayed_inside);
            CHECK((destroys.outputs == copies.outputs));
            CHECK(kernel.needs(destroyed).workspace_bytes <= kernel.needs().workspace_bytes);
            for (std::size_t j = 0; j < kernel.inputs.size(); ++j)
              if (!destroyed.has(j) && !kernel.op->shape_only.has(j))
                CHECK((destroys.inputs[j] == kernel.input_values[j]));
          }
        }
      });
}

TEST_CASE("An output that is left out changes nothing about the others") {
  for_every_kernel(
      [](const OpDef& op) { return !(op.gradient_outputs | op.optional_outputs).empty(); },
      [](const KernelCase& kernel) {
        const IndexSet gradient_only = named(kernel.op->gradient_outputs, kernel.outputs.size()),
                       optional = named(kernel.op->optional_outputs, kernel.outputs.size());
        if (gradient_only.empty() && optional.empty()) return;
        const auto with = kernel.run(kNoise);
        const auto compare = [&](const IndexSet& unwanted) {
          const auto without = kernel.run(kNoise, -1, unwanted);
          CHECK(without.stayed_inside);
          for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
            if (unwanted.has(i)) continue;
            INFO("output " << i);
            // Opaque outputs are compared elsewhere, by the gradients that are made of them.
            if (!gradient_only.has(i)) CHECK((without.outputs[i] == with.outputs[i]));
          }
        };
        compare(gradient_only);
        for (std::size_t i = 0; i < kernel.outputs.size(); ++i) {
          INFO("without output " << i << ", then with it alone");
          if (!optional.has(i)) continue;
          // Deep stacks have many outputs: tries the first and the last of them.
          if (i >= 6 && i + 4 < kernel.outputs.size()) continue;
          compare({i});
          IndexSet others;
          for (std::size_t j = 0; j < kernel.outputs.size(); ++j)
            if (j != i && optional.has(j)) others.insert(j);
          compare(others);
        }
      });
}

}  // namespace ebb::tests
