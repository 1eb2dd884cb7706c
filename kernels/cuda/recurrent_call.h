#pragma once
#include "ebb/kernels/cuda/recurrent_cell.h"
#include "ebb/kernels/cuda/stream_memory.h"

namespace ebb::cuda {

// Dropout of a layer's input.
template <class T>
Status drop_layer(const RecurrentCall<T>& of, const T* from, T* to, std::int64_t layer,
                  bool time_major) noexcept {
  return drop<T>(stream_of(of.context), of.size, from, to, of.attributes.dropout,
                 of.template draw<std::int64_t>(), layer, time_major);
}

// Writes all gradients where there are no steps, or no sequences.
template <class T>
Status gradients_without_steps(const RecurrentBackwardCall<T>& of) noexcept {
  for (std::int64_t i = 0; i < of.at.count; ++i) {
    if (!of.at.has_gradient(i)) continue;
    const auto input = static_cast<std::size_t>(i);
    const T* const from = i == of.at.h0 ? of.d_hidden : i == of.at.c0 ? of.d_cell : nullptr;
    const std::size_t bytes = of.context.outputs[of.at.gradient(input)].spec.bytes();
    EBB_TRY(copy(stream_of(of.context), of.gradient(input), from, bytes));
  }
  return {};
}

}  // namespace ebb::cuda
