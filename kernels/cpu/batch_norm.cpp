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
  for_all_blocks<T>(view, [=](std::int64_t c, std::int64_t some, const auto& each) {
    const Block<T> its_mean = m.at(c, some), its_inverse = r.at(c, some), by = a.at(c, some),
                   more = b.at(c, some);
    each([&](std::int64_t at, std::int64_t count) {
      const Block<T> normal = (load_some(x + at, count) - its_mean) * its_inverse;
      store_some(y + at, normal * by + more, count);
    });
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
    channel_sums<T, 1>(view, totals, [=](std::int64_t, std::int64_t, const auto& each) {
      each([&](std::int64_t at, std::int64_t count, Block<T>* sums) {
        sums[0] += load_some(x + at, count, T(0));
      });
    });
    for (std::int64_t c = 0; c < view.channels; ++c) {
      mean[c] = static_cast<T>(totals[c] / terms);
      running_mean.enter(c, mean[c]);
    }
    const PerChannel<T> means{mean, view.inner == 1, T(0)};
    channel_sums<T, 1>(view, totals, [=](std::int64_t c, std::int64_t some, const auto& each) {
      const T padding = mean[c];
      const Block<T> its_mean = means.at(c, some);
      each([&](std::int64_t at, std::int64_t count, Block<T>* sums) {
        const Block<T> d = load_some(x + at, count, padding) - its_mean;
        sums[0] += d * d;
      });
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
    channel_sums<T, 2>(view, totals, [=](std::int64_t c, std::int64_t some, const auto& each) {
      const Block<T> mean = products ? m.at(c, some) : T(0),
                     inverse = products ? r.at(c, some) : T(0);
      each([&](std::int64_t at, std::int64_t count, Block<T>* sums) {
        const Block<T> g = load_some(dy + at, count, T(0));
        sums[0] += g;
        if (!products) return;
        const Block<T> d = load_some(x + at, count, T(0)) - mean;
        sums[1] += g * (d * inverse);
      });
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
    for_all_blocks<T>(view, [=](std::int64_t c, std::int64_t some, const auto& each) {
      const Block<T> mean = m.at(c, some), inverse = r.at(c, some), of_mean = first.at(c, some),
                     of_size = second.at(c, some), by = inverse * scale.at(c, some);
      each([&](std::int64_t at, std::int64_t count) {
        const Block<T> normal = (load_some(x + at, count) - mean) * inverse;
        const Block<T> g = (load_some(dy + at, count) - of_mean) - normal * of_size;
        store_some(dx + at, g * by, count);
      });
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
