#include "ebb/core/kernels/random.h"

#include <cmath>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/philox.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/pack.h"

namespace ebb::cuda {
namespace {

// The four elements of a draw that one counter makes. A thread writes all four, or one of them; i
// is the first it writes. The rule turns the counter's words into elements.
template <class T, class Rule>
struct Drawn {
  const std::int64_t* draw;  // key, counter
  T* out;
  Rule rule;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const Philox::Words words =
        Philox::draw(static_cast<std::uint64_t>(draw[0]), static_cast<std::uint64_t>(draw[1]),
                     static_cast<std::uint64_t>(i) / 4);
    Pack<T, 4> four;
    rule(words, four);
    if constexpr (N == 4) {
      store(out + i, four);
    } else {
      for (int j = 0; j < 4; ++j)
        if (j == i % 4) out[i] = four[j];
    }
  }
};

template <class T, class Rule>
Status draw_each(const KernelContext& context, const Rule& rule) noexcept {
  const Buffer& out = context.outputs[0];
  const Drawn<T, Rule> body{context.inputs[0].as<const std::int64_t>(), out.as<T>(), rule};
  return for_each<4>(stream_of(context), body, out.elements(), takes_packs<4>(body.out));
}

// Uses one fused multiply-add: rounding product and sum apart would differ between devices.
template <class T>
struct Uniform {
  using A = Accumulate<T>;

  A low, high, width;

  __device__ void operator()(const Philox::Words& words, Pack<T, 4>& out) const {
    for (int j = 0; j < 4; ++j) {
      const A unit = static_cast<A>(unit_interval(words[static_cast<std::size_t>(j)]));
      const A x = std::fma(width, unit, low);
      out[j] = below_high(x < high ? x : low);  // `low` if rounded up to the open end
    }
  }

 private:
  __device__ T below_high(A x) const {
    const T rounded = static_cast<T>(x);
    if constexpr (kIsHalf<T>)
      if (low < high && static_cast<A>(rounded) >= high) return largest_below<T>(high);
    return rounded;
  }
};

// Computes in double whatever the result's type, so that f32 has the same numbers, rounded once
// more.
template <class T>
struct Normal {
  double mean, deviation;

  __device__ void operator()(const Philox::Words& words, Pack<T, 4>& out) const {
    for (int j = 0; j < 4; j += 2) {
      const auto pair = static_cast<std::size_t>(j);
      const double u = 1 - static_cast<double>(unit_interval(words[pair]));
      const double turn = static_cast<double>(unit_interval(words[pair + 1]));
      const double radius = std::sqrt(-2 * std::log(u));
      out[j] = convert<T>(mean + deviation * (radius * cospi(2 * turn)));
      out[j + 1] = convert<T>(mean + deviation * (radius * sinpi(2 * turn)));
    }
  }
};

template <class T>
struct Bernoulli {
  double probability;

  __device__ void operator()(const Philox::Words& words, Pack<T, 4>& out) const {
    for (int j = 0; j < 4; ++j) {
      const float unit = unit_interval(words[static_cast<std::size_t>(j)]);
      out[j] = static_cast<double>(unit) < probability ? T(1) : T(0);
    }
  }
};

template <class T>
struct Randint {
  std::int64_t low;
  std::uint64_t count;

  __device__ void operator()(const Philox::Words& words, Pack<T, 4>& out) const {
    for (int j = 0; j < 4; ++j)
      out[j] = RandintAttributes::of<T>(low, count, words[static_cast<std::size_t>(j)]);
  }
};

template <class T>
struct Dropout {
  const T* in;
  T* out;
  const std::int64_t* draw;
  RandomAttributes told;  // where N is 4, its first is a multiple of 4
  Accumulate<T> kept;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const std::int64_t element = told.first + i;
    const Philox::Words words =
        Philox::draw(static_cast<std::uint64_t>(draw[0]), told.draw.counter(draw[1]),
                     static_cast<std::uint64_t>(element) / 4);
    Pack<T, N> x = load<N>(in + i);
    for (int j = 0; j < 4; ++j) {
      const int k = N == 4 ? j : 0;
      if (N == 1 && j != element % 4) continue;
      const float unit = unit_interval(words[static_cast<std::size_t>(j)]);
      x[k] = static_cast<double>(unit) >= told.a
                 ? static_cast<T>(static_cast<Accumulate<T>>(x[k]) / kept)
                 : T(0);
    }
    store(out + i, x);
  }
};

}  // namespace

Status uniform(const KernelContext& context) {
  const auto& range = context.attribute<RandomAttributes>();
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    const auto as = [](double x) { return static_cast<Accumulate<T>>(x); };
    return draw_each<T>(context, Uniform<T>{as(range.a), as(range.b), as(range.b - range.a)});
  });
}

Status normal(const KernelContext& context) {
  const auto& attributes = context.attribute<RandomAttributes>();
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    return draw_each<T>(context, Normal<T>{attributes.a, attributes.b});
  });
}

Status bernoulli(const KernelContext& context) {
  return for_floating(context.outputs[0].spec.dtype, [&]<class T>(T) {
    return draw_each<T>(context, Bernoulli<T>{context.attribute<RandomAttributes>().a});
  });
}

Status randint(const KernelContext& context) {
  const auto& told = context.attribute<RandintAttributes>();
  return for_integer(context.outputs[0].spec.dtype, [&]<class T>(T) {
    return draw_each<T>(context, Randint<T>{told.low, told.count});
  });
}

Status dropout(const KernelContext& context) {
  const auto& told = context.attribute<RandomAttributes>();
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const Dropout<T> body{in.as<const T>(), out.as<T>(), context.inputs[1].as<const std::int64_t>(),
                          told, static_cast<Accumulate<T>>(1 - told.a)};
    return for_each<4>(stream_of(context), body, out.elements(),
                       told.first % 4 == 0 && takes_packs<4>(body.in, body.out));
  });
}

}  // namespace ebb::cuda
