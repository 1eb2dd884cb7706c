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

// Writes dx, adds dy to sums[c] and dy times normal to sums[channels + c]: for one group of
// channels in one or more batch rows.
template <class T>
struct RowGradients {
  static constexpr std::int64_t kRows = 32;  // that are added up in T
  NormView view;
  const T *dy, *x, *inverses, *means;  // the last two perhaps null
  PerChannel<T> scale;
  T* dx;  // or null

  struct Row {
    T mean = 0, inverse = 0, of_mean = 0, of_size = 0;

    Block<T> normal(const Block<T>& x) const noexcept { return (x - mean) * inverse; }
    Block<T> dx(const Block<T>& g, const Block<T>& normal) const noexcept {
      return ((g - of_mean) - normal * of_size) * inverse;
    }
    // From the sums of g and g normal, where g is dy scale.
    void finish(double gradients, double products, bool has_mean, double terms) noexcept {
      if (has_mean) of_mean = static_cast<T>(gradients / terms);
      of_size = static_cast<T>(products / terms);
    }
  };
  Row row_of(std::int64_t i) const noexcept {
    Row result;
    if (means != nullptr) result.mean = means[i];
    if (inverses != nullptr) result.inverse = inverses[i];
    return result;
  }

  // inner = 1: `rows` rows, kRows at most. `sums` may be null.
  void neighbours(std::int64_t first, std::int64_t rows, std::int64_t from,
                  double* sums) const noexcept {
    const std::int64_t to = from + view.per_group(), stride = view.channels;
    const std::int64_t statistic = first * view.groups + from / view.per_group();
    Row of[kRows];
    for (std::int64_t k = 0; k < rows; ++k) {
      of[k] = row_of(statistic + k * view.groups);
      if (dx == nullptr) continue;
      RunningSum<T> gradients, products;
      for_plane<T>(from, to - from, [&](std::int64_t c, std::int64_t count) {
        const std::int64_t at = (first + k) * stride + c;
        __builtin_prefetch(dx + at, 1);
        const Block<T> g = load_some(dy + at, count, T(0)) * scale.at(c, count);
        gradients.add(g);
        products.add(g * of[k].normal(load_some(x + at, count, T(0))));
      });
      of[k].finish(gradients.total(), products.total(), means != nullptr,
                   static_cast<double>(to - from));
    }
    // kBlocks blocks of columns.
    const auto columns = [&]<int kBlocks>(std::integral_constant<int, kBlocks>, std::int64_t c,
                                          std::int64_t count) {
      Block<T> by[kBlocks], shifts[kBlocks], sizes[kBlocks];
      for (int i = 0; i < kBlocks; ++i) {
        by[i] = scale.at(c + i * kBlock<T>, count);
        shifts[i] = sizes[i] = T(0);
      }
      for (std::int64_t k = 0; k < rows; ++k)
        for (int i = 0; i < kBlocks; ++i) {
          const std::int64_t at = (first + k) * stride + c + i * kBlock<T>;
          const Block<T> g = load_some(dy + at, count, T(0));
          const Block<T> normal = of[k].normal(load_some(x + at, count, T(0)));
          shifts[i] += g;
          sizes[i] += g * normal;
          if (dx != nullptr) store_some(dx + at, of[k].dx(g * by[i], normal), count);
        }
      if (sums == nullptr) return;
      T elements[2][kBlocks * kBlock<T>];
      for (int i = 0; i < kBlocks; ++i) {
        store(elements[0] + i * kBlock<T>, shifts[i]);
        store(elements[1] + i * kBlock<T>, sizes[i]);
      }
      for (std::int64_t j = 0; j < (kBlocks - 1) * kBlock<T> + count; ++j) {
        sums[c + j] += static_cast<double>(elements[0][j]);
        sums[view.channels + c + j] += static_cast<double>(elements[1][j]);
      }
    };
    std::int64_t c = from;
    for (; c + 2 * kBlock<T> <= to; c += 2 * kBlock<T>)
      columns(std::integral_constant<int, 2>{}, c, kBlock<T>);
    for (; c < to; c += kBlock<T>)
      columns(std::integral_constant<int, 1>{}, c, std::min(kBlock<T>, to - c));
  }

  // Other inner: a row. `sums` may be null.
  void planes(std::int64_t first, std::int64_t from, double* sums) const noexcept {
    const std::int64_t to = from + view.per_group();
    Row row = row_of(first * view.groups + from / view.per_group());
    double gradients = 0, products = 0;
    for (std::int64_t c = from; c < to; ++c) {
      RunningSum<T> shifts, sizes;
      for_plane<T>((first * view.channels + c) * view.inner, view.inner,
                   [&](std::int64_t at, std::int64_t count) {
                     const Block<T> g = load_some(dy + at, count, T(0));
                     shifts.add(g);
                     sizes.add(g * row.normal(load_some(x + at, count, T(0))));
                   });
      const double shift = shifts.total(), size = sizes.total();
      if (sums != nullptr) {
        sums[c] += shift;
        sums[view.channels + c] += size;
      }
      const auto by = static_cast<double>(scale.one(c));
      gradients += by * shift;
      products += by * size;
    }
    if (dx == nullptr) return;
    row.finish(gradients, products, means != nullptr, static_cast<double>(view.terms()));
    for_blocks<T>(view, first, from, to, [&](std::int64_t c, std::int64_t some, const auto& each) {
      const Block<T> by = scale.at(c, some);
      each([&](std::int64_t at, std::int64_t count) {
        const Block<T> g = load_some(dy + at, count) * by;
        store_some(dx + at, row.dx(g, row.normal(load_some(x + at, count))), count);
      });
    });
  }
};

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
      for_blocks<T>(view, row, from, to, [&](std::int64_t c, std::int64_t some, const auto& each) {
        const Block<T> by = scale.at(c, some), more = shift.at(c, some);
        each([&](std::int64_t at, std::int64_t count) {
          const Block<T> normal = (load_some(x + at, count) - m) * r;
          store_some(y + at, normal * by + more, count);
        });
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

// A piece is a group of channels in some batch rows. All three gradients are made from one reading.
Status norm_backward(const KernelContext& context) {
  const auto& attributes = context.attribute<NormAttributes>();
  const NormView view(context.inputs[1].spec.shape, attributes);
  return for_wide(context.outputs[0].spec.dtype, [&]<class T>(T) {
    T *dx = context.outputs[0].as<T>(), *d_scale = context.outputs[1].as<T>(),
      *d_shift = context.outputs[2].as<T>();
    // Inputs of an unwanted output alone have no values.
    const bool has_x = dx != nullptr || d_scale != nullptr;
    const T* dy = context.inputs[0].as<const T>();
    const RowGradients<T> of{
        view,
        dy,
        has_x ? context.inputs[1].as<const T>() : dy,
        has_x ? context.inputs[2].as<const T>() : nullptr,
        has_x && attributes.has_mean() ? context.inputs[3].as<const T>() : nullptr,
        {dx != nullptr && attributes.has_scale ? context.inputs[4].as<const T>() : nullptr,
         view.inner == 1, T(1)},
        dx};
    const bool has_sums = d_scale != nullptr || d_shift != nullptr;
    double* const totals = static_cast<double*>(context.workspace);
    const ChannelSums cut(view);
    const std::int64_t width = view.per_group();
    const auto piece = [&](std::int64_t i) {
      const std::int64_t part = i / view.groups, from = i % view.groups * width;
      const std::int64_t last = std::min(view.batch, (part + 1) * cut.rows);
      double* const sums = has_sums ? totals + part * 2 * view.channels : nullptr;
      for (int k = 0; k < 2 && has_sums; ++k)
        std::fill_n(sums + k * view.channels + from, width, 0.0);
      std::int64_t row = part * cut.rows;
      if (view.inner != 1)
        for (; row < last; ++row) of.planes(row, from, sums);
      for (; row < last; row += of.kRows)
        of.neighbours(row, std::min(of.kRows, last - row), from, sums);
    };
    for_items(cut.parts * view.groups, rows_per_piece(cut.rows * width * view.inner), piece);
    if (!has_sums) return;
    cut.add_parts(view, totals, 2);
    for (std::int64_t c = 0; c < view.channels; ++c) {
      if (d_shift != nullptr) d_shift[c] = static_cast<T>(totals[c]);
      if (d_scale != nullptr) d_scale[c] = static_cast<T>(totals[view.channels + c]);
    }
  });
}

}  // namespace ebb::cpu
