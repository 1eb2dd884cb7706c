#include "ebb/core/kernels/layout.h"

#include <numeric>

#include "ebb/tests/kernels/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

constexpr DType kOfAllSizes[] = {DType::u8, DType::f16, DType::f32, DType::i64};

// Bytes that tell elements of every size apart.
Values noise(Dice& dice, DType type, const Shape& shape) {
  Values v({type, shape});
  for (std::size_t i = 0; i < v.bytes(); ++i)
    v.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(dice.integer(0, 255));
  return v;
}

// The flat place of an index, and the index of a flat place.
std::int64_t place(const Shape& shape, const std::vector<std::int64_t>& index) {
  std::int64_t at = 0;
  for (int i = 0; i < shape.rank(); ++i) at = at * shape[i] + index[static_cast<std::size_t>(i)];
  return at;
}
std::vector<std::int64_t> index_of(const Shape& shape, std::int64_t at) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; at /= shape[i--])
    index[static_cast<std::size_t>(i)] = at % shape[i];
  return index;
}

bool same_element(Values& a, std::int64_t i, Values& b, std::int64_t k) {
  const std::size_t size = size_of(a.spec().dtype);
  return std::memcmp(a.as<std::byte>() + static_cast<std::size_t>(i) * size,
                     b.as<std::byte>() + static_cast<std::size_t>(k) * size, size) == 0;
}

// Small sides in every order, and now and then sides of several tiles and a rest.
Shape any_shape(Dice& dice, int repeat) {
  Shape shape;
  const std::int64_t rank = dice.integer(1, kMaxRank);
  for (int i = 0; i < rank; ++i) shape.push_back(dice.integer(1, 4));
  if (repeat % 3 == 0)
    for (int i = 0; i < 2; ++i)
      shape.set(static_cast<int>(dice.integer(0, rank - 1)), dice.integer(30, 200));
  return shape;
}

}  // namespace

TEST_CASE("permute puts every element where its index says") {
  Dice dice(1);
  for (int repeat = 0; repeat < 400; ++repeat) {
    const DType type = kOfAllSizes[repeat % 4];
    const Shape shape = any_shape(dice, repeat);
    PermuteAttributes order{.rank = shape.rank()};
    std::iota(order.axes, order.axes + order.rank, 0);
    std::shuffle(order.axes, order.axes + order.rank, dice.engine);
    Shape to;
    for (int i = 0; i < shape.rank(); ++i) to.push_back(shape[order.axes[i]]);
    Call call{.kernel = cpu::permute,
              .attributes = order,
              .inputs = {noise(dice, type, shape)},
              .outputs = {{type, to}}};
    auto out = call.run();
    std::int64_t wrong = 0;
    for (std::int64_t at = 0; at < to.elements(); ++at) {
      const std::vector<std::int64_t> index = index_of(to, at);
      std::vector<std::int64_t> from(index.size());
      for (std::size_t i = 0; i < index.size(); ++i)
        from[static_cast<std::size_t>(order.axes[i])] = index[i];
      wrong += !same_element(out[0], at, call.inputs[0], place(shape, from));
    }
    INFO("of " << name(type) << shape.to_string() << " as " << to.to_string());
    CHECK(wrong == 0);
    if (repeat % 50 == 0) check_threads_agree(call);
  }
}
