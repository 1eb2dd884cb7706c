#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/kernels/cpu/norm_walk.h"

namespace ebb::cpu {
namespace {

// y = (x - mean) inverse scale + shift, with one of each per channel.
template <class T>
void normalise(const NormView& view, const T* x, const T* mean, const T* inverse, const T* scale,
               const T* shift, T* y) {
  const auto of = [&](const T* values) { return PerChannel<T>{values, view.inner == 1, T(0)}; };
  const auto m = of(mean), r = of(inverse), a = of(scale), b = of(shift);
  for_all_blocks<T>(view, [=](std::int64_t at, std::int64_t c, std::int64_t count) {
    const Block<T> normal = (load_some(x + at, count) - m.at(c, count)) * r.at(c, count);
    store_some(y + at, normal * a.at(c, count) + b.at(c, count), count);
  });
}

// The sums of parts, and two numbers for each channel.
MemoryNeeds needs_of_sums(const MemoryQuery& query, std::size_t x, int sums) {
  const NormView view(query.inputs[x].shape, query.attribute<NormAttributes>());
  Carver carver(nullptr);
  carver.take<double>(ChannelSums(view).doubles(view, sums));
  carver.take<double>(2 * view.channels);  // of T
  return {.workspace_bytes = carver.bytes()};
}

}  // namespace

// Workspace: the sums of parts, and outputs that nobody asked for.
MemoryNeeds batch_norm_memory(const MemoryQuery& query) { return needs_of_sums(query, 0, 1); }

Status batch_norm(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[0].spec.shape, attributes);
  return for_wide(context.outputs[0].spec.dtype, [&]<class T>(T) {
    Carver carver(context.workspace);
    double* totals = carver.take<double>(ChannelSums(view).doubles(view, 1));
    T* spare = carver.take<T>(2 * view.channels);
    const T* x = context.inputs[0].as<const T>();
    const auto output_or = [&](std::size_t i, T* instead) {
      return context.outputs[i].data != nullptr ? context.outputs[i].as<T>() : instead;
    };
    T *inverse = output_or(1, spare), *mean = output_or(2, spare + view.channels);
    const auto terms = static_cast<double>(view.terms());
    const auto running = [&](std::size_t i) {
      return RunningValues<T>(context.inputs[i], context.outputs[i], attributes.momentum, terms);
    };
    const auto running_mean = running(3), running_variance = running(4);
    channel_sums<T, 1>(view, totals,
                       [=](std::int64_t at, std::int64_t, std::int64_t, std::int64_t count) {
                         return Terms<T, 1>{{load_some(x + at, count, T(0))}};
                       });
    for (std::int64_t c = 0; c < view.channels; ++c) {
      mean[c] = static_cast<T>(totals[c] / terms);
      running_mean.enter(c, mean[c]);
    }
    const PerChannel<T> means{mean, view.inner == 1, T(0)};
    channel_sums<T, 1>(view, totals,
                       [=](std::int64_t at, std::int64_t, std::int64_t c, std::int64_t count) {
                         const Block<T> d = load_some(x + at, count, mean[c]) - means.at(c, count);
                         return Terms<T, 1>{{d * d}};
                       });
    for (std::int64_t c = 0; c < view.channels; ++c) {
      running_variance.enter(c, static_cast<T>(totals[c] / (terms - 1)));
      inverse[c] = static_cast<T>(scale_to_one(totals[c], terms, attributes.epsilon));
    }
    normalise(view, x, mean, inverse, context.inputs[1].as<const T>(),
              context.inputs[2].as<const T>(), context.outputs[0].as<T>());
  });
}

MemoryNeeds batch_norm_backward_memory(const MemoryQuery& query) {
  return needs_of_sums(query, 1, 2);
}

Status batch_norm_backward(const KernelContext& context) {
  const NormView view(context.inputs[1].spec.shape, context.attribute<NormAttributes>());
  return for_wide(context.outputs[0].spec.dtype, [&]<class T>(T) {
    Carver carver(context.workspace);
    double* totals = carver.take<double>(ChannelSums(view).doubles(view, 2));
    T* shares = carver.take<T>(2 * view.channels);
    const T* dy = context.inputs[0].as<const T>();
    const T* x = context.inputs[1].as<const T>();
    const bool neighbours = view.inner == 1;
    const PerChannel<T> r{context.inputs[2].as<const T>(), neighbours, T(0)};
    const PerChannel<T> scale{context.inputs[4].as<const T>(), neighbours, T(0)};
    const PerChannel<T> m{context.inputs[3].as<const T>(), neighbours, T(0)};
    T *dx = context.outputs[0].as<T>(), *d_scale = context.outputs[1].as<T>(),
      *d_shift = context.outputs[2].as<T>();
    const bool products = dx != nullptr || d_scale != nullptr;
    channel_sums<T, 2>(view, totals,
                       [=](std::int64_t at, std::int64_t, std::int64_t c, std::int64_t count) {
                         const Block<T> g = load_some(dy + at, count, T(0));
                         if (!products) return Terms<T, 2>{{g, g}};
                         const Block<T> d = load_some(x + at, count, T(0)) - m.at(c, count);
                         return Terms<T, 2>{{g, g * (d * r.at(c, count))}};
                       });
    const double* of_size = totals + view.channels;
    const auto terms = static_cast<double>(view.terms());
    for (std::int64_t c = 0; c < view.channels; ++c) {
      if (d_shift != nullptr) d_shift[c] = static_cast<T>(totals[c]);
      if (d_scale != nullptr) d_scale[c] = static_cast<T>(of_size[c]);
      shares[c] = static_cast<T>(totals[c] / terms);
      shares[view.channels + c] = static_cast<T>(of_size[c] / terms);
    }
    if (dx == nullptr) return;
    const PerChannel<T> first{shares, neighbours, T(0)},
        second{shares + view.channels, neighbours, T(0)};
    for_all_blocks<T>(view, [=](std::int64_t at, std::int64_t c, std::int64_t count) {
      const Block<T> inverse = r.at(c, count);
      const Block<T> normal = (load_some(x + at, count) - m.at(c, count)) * inverse;
      const Block<T> g =
          (load_some(dy + at, count) - first.at(c, count)) - normal * second.at(c, count);
      store_some(dx + at, g * (inverse * scale.at(c, count)), count);
    });
  });
}

MemoryNeeds batch_norm_inference_memory(const MemoryQuery& query) {
  const NormView view(query.inputs[0].shape, query.attribute<NormAttributes>());
  Carver carver(nullptr);
  carver.take<double>(view.channels);  // of T
  return {.workspace_bytes = carver.bytes()};
}

Status batch_norm_inference(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[0].spec.shape, attributes);
  return for_wide(context.outputs[0].spec.dtype, [&]<class T>(T) {
    T* inverse = static_cast<T*>(context.workspace);
    const T* variance = context.inputs[2].as<const T>();
    for (std::int64_t c = 0; c < view.channels; ++c)
      inverse[c] =
          static_cast<T>(scale_to_one(static_cast<double>(variance[c]), 1, attributes.epsilon));
    normalise(view, context.inputs[0].as<const T>(), context.inputs[1].as<const T>(),
              static_cast<const T*>(inverse), context.inputs[3].as<const T>(),
              context.inputs[4].as<const T>(), context.outputs[0].as<T>());
  });
}

}  // namespace ebb::cpu
