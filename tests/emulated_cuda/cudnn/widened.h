#pragma once
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "ebb/tests/emulated_cuda/cudnn/lstm.h"

namespace ebb::emulated {

// Float copies of 16-bit operands: inputs are widened, everything is computed in float, and store()
// rounds the results.
template <class T>
class Widened {
 public:
  Widened(const LstmShape& shape, const LstmPlaces<T>& of) {
    const std::int64_t in = shape.rows() * shape.rnn.in, out = shape.rows() * shape.rnn.hidden;
    const std::int64_t state = shape.state(), weights = WeightPlaces(shape.rnn).elements;
    const std::pair<Read, std::int64_t> reads[] = {
        {{&Narrow::x, &Wide::x}, in},       {{&Narrow::hx, &Wide::hx}, state},
        {{&Narrow::cx, &Wide::cx}, state},  {{&Narrow::weights, &Wide::weights}, weights},
        {{&Narrow::dy, &Wide::dy}, out},    {{&Narrow::dhy, &Wide::dhy}, state},
        {{&Narrow::dcy, &Wide::dcy}, state}};
    for (const auto& [member, count] : reads)
      places_.*member.second = widen(of.*member.first, count);
    const std::pair<Written, std::int64_t> writes[] = {
        {{&Narrow::y, &Wide::y}, out},
        {{&Narrow::hy, &Wide::hy}, state},
        {{&Narrow::cy, &Wide::cy}, state},
        {{&Narrow::dx, &Wide::dx}, in},
        {{&Narrow::dhx, &Wide::dhx}, state},
        {{&Narrow::dcx, &Wide::dcx}, state},
        {{&Narrow::dweights, &Wide::dweights}, weights},
        {{&Narrow::reserve, &Wide::reserve}, shape.reserve_elements()}};
    for (const auto& [member, count] : writes) {
      places_.*member.second = widen(of.*member.first, count);
      written_.push_back({of.*member.first, places_.*member.second, count});
    }
  }
  const LstmPlaces<float>& places() const { return places_; }
  void store() const {
    for (const auto& [to, from, count] : written_)
      for (std::int64_t i = 0; to && i < count; ++i) to[i] = static_cast<T>(from[i]);
  }

 private:
  using Narrow = LstmPlaces<T>;
  using Wide = LstmPlaces<float>;
  using Read = std::pair<const T * Narrow::*, const float * Wide::*>;
  using Written = std::pair<T * Narrow::*, float * Wide::*>;

  float* widen(const T* from, std::int64_t count) {
    if (!from) return nullptr;
    std::vector<float>& to = memory_.emplace_back(static_cast<std::size_t>(count));
    std::transform(from, from + count, to.begin(), [](T x) { return static_cast<float>(x); });
    return to.data();
  }

  LstmPlaces<float> places_ = {};
  std::vector<std::vector<float>> memory_;
  std::vector<std::tuple<T*, const float*, std::int64_t>> written_;
};

}  // namespace ebb::emulated
