#include "ebb/core/kernels/norm.h"

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/norm_walk.h"

namespace ebb::cpu {
namespace {

// Calls body(batch row, first channel, last channel, statistic) for each normalised row, over all
// threads.
template <class Body>
void for_rows(const NormView& view, const Body& body) {
  const std::int64_t width = view.per_group();
  for_items(view.statistics(), rows_per_piece(view.terms()), [&](std::int64_t i) {
    const std::int64_t first = i % view.groups * width;
    body(i / view.groups, first, first + width, i);
  });
}

// The sum of (x - mean)^2.
template <class T>
double squares(const T* x, std::int64_t count, T mean) noexcept {
  const Block<T> means = mean;
  RunningSum<T> sum;
  for (std::int64_t i = 0; i < count; i += kBlock<T>) {
    const Block<T> d = load_some(x + i, std::min(kBlock<T>, count - i), mean) - means;
    sum.add(d * d);
  }
  return sum.total();
}

}  // namespace

Status norm(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[0].spec.shape, attributes);
  return for_wide(context.outputs[0].spec.dtype, [&]<class T>(T) {
    const bool neighbours = view.inner == 1;
    const T* x = context.inputs[0].as<const T>();
    const PerChannel<T> scale{attributes.has_scale ? context.inputs[1].as<const T>() : nullptr,
                              neighbours, T(1)};
    const PerChannel<T> shift{attributes.has_shift ? context.inputs[2].as<const T>() : nullptr,
                              neighbours, T(0)};
    T* y = context.outputs[0].as<T>();
    T* inverses = context.outputs[1].as<T>();
    T* means = attributes.has_mean() ? context.outputs[2].as<T>() : nullptr;
    const auto terms = static_cast<double>(view.terms());
    for_rows(view, [&](std::int64_t row, std::int64_t from, std::int64_t to, std::int64_t i) {
      const T* first = x + i * view.terms();
      const T mean = attributes.has_mean()
                         ? static_cast<T>(add_contiguous(first, view.terms()) / terms)
                         : T(0);
      const T inverse = static_cast<T>(
          scale_to_one(squares(first, view.terms(), mean), terms, attributes.epsilon));
      if (means != nullptr) means[i] = mean;
      if (inverses != nullptr) inverses[i] = inverse;
      const Block<T> m = mean, r = inverse;
      for_blocks<T>(view, row, from, to, [&](std::int64_t at, std::int64_t c, std::int64_t count) {
        const Block<T> normal = (load_some(x + at, count) - m) * r;
        store_some(y + at, normal * scale.at(c, count) + shift.at(c, count), count);
      });
    });
  });
}

// Workspace: the sums for the gradients of scale and shift.
MemoryNeeds norm_backward_memory(const MemoryQuery& query) {
  if (!query.wants(1) && !query.wants(2)) return {};
  const NormView view(query.inputs[1].shape, query.attribute<NormAttributes>());
  return {.workspace_bytes =
              static_cast<std::size_t>(ChannelSums(view).doubles(view, 2)) * sizeof(double)};
}

Status norm_backward(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[1].spec.shape, attributes);
  return for_wide(context.outputs[0].spec.dtype, [&]<class T>(T) {
    const T* dy = context.inputs[0].as<const T>();
    const T* x = context.inputs[1].as<const T>();
    const T* inverses = context.inputs[2].as<const T>();
    const PerChannel<T> scale{attributes.has_scale ? context.inputs[4].as<const T>() : nullptr,
                              view.inner == 1, T(1)};
    const T* means = attributes.has_mean() ? context.inputs[3].as<const T>() : nullptr;
    T *d_scale = context.outputs[1].as<T>(), *d_shift = context.outputs[2].as<T>();
    if (d_scale != nullptr || d_shift != nullptr) {
      double* totals = static_cast<double*>(context.workspace);
      const std::int64_t width = view.per_group();
      // The statistics for a block, which differ within it where a group is narrower.
      const auto of_block = [&](const T* values, std::int64_t row, std::int64_t c,
                                std::int64_t count) -> Block<T> {
        const std::int64_t first = row * view.groups + c / width;
        if (view.inner > 1 || view.groups == 1) return values[first];
        T elements[kBlock<T>] = {};
        for (std::int64_t j = 0; j < count; ++j)
          elements[j] = values[row * view.groups + (c + j) / width];
        return load(elements);
      };
      channel_sums<T, 2>(
          view, totals, [&](std::int64_t at, std::int64_t row, std::int64_t c, std::int64_t count) {
            const Block<T> g = load_some(dy + at, count, T(0));
            Terms<T, 2> terms{{g, g}};
            if (d_scale == nullptr) return terms;
            Block<T> normal = load_some(x + at, count, T(0));
            if (means != nullptr) normal = normal - of_block(means, row, c, count);
            terms.sums[1] = g * (normal * of_block(inverses, row, c, count));
            return terms;
          });
      for (std::int64_t c = 0; c < view.channels; ++c) {
        if (d_shift != nullptr) d_shift[c] = static_cast<T>(totals[c]);
        if (d_scale != nullptr) d_scale[c] = static_cast<T>(totals[view.channels + c]);
      }
    }
    T* dx = context.outputs[0].as<T>();
    if (dx == nullptr) return;
    const auto terms = static_cast<double>(view.terms());
    for_rows(view, [&](std::int64_t row, std::int64_t from, std::int64_t to, std::int64_t i) {
      const Block<T> m = means != nullptr ? means[i] : T(0), r = inverses[i];
      RunningSum<T> gradients, products;
      for_blocks<T>(view, row, from, to, [&](std::int64_t at, std::int64_t c, std::int64_t count) {
        const Block<T> g = load_some(dy + at, count, T(0)) * scale.at(c, count);
        gradients.add(g);
        products.add(g * ((load_some(x + at, count, T(0)) - m) * r));
      });
      const Block<T> of_mean = means != nullptr ? static_cast<T>(gradients.total() / terms) : T(0);
      const Block<T> of_size = static_cast<T>(products.total() / terms);
      for_blocks<T>(view, row, from, to, [&](std::int64_t at, std::int64_t c, std::int64_t count) {
        const Block<T> g = load_some(dy + at, count) * scale.at(c, count);
        const Block<T> normal = (load_some(x + at, count) - m) * r;
        store_some(dx + at, ((g - of_mean) - normal * of_size) * r, count);
      });
    });
  });
}

}  // namespace ebb::cpu
