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

TEST_CASE("concat puts rows side by side, and concat_backward takes them apart again") {
  Dice dice(2);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const DType type = kOfAllSizes[repeat % 4];
    const Shape shape = any_shape(dice, repeat);
    const auto axis = static_cast<int>(dice.integer(0, shape.rank() - 1));
    Call call{.kernel = cpu::concat, .attributes = ConcatAttributes{axis}};
    Call back{.kernel = cpu::concat_backward, .attributes = ConcatAttributes{axis}};
    Shape whole = shape;
    whole.set(axis, 0);
    for (std::int64_t parts = dice.integer(1, 4); parts > 0; --parts) {
      Shape part = shape;
      part.set(axis, dice.integer(0, repeat == 0 ? 100'000 : 5));
      whole.set(axis, whole[axis] + part[axis]);
      call.inputs.push_back(noise(dice, type, part));
      back.outputs.push_back({type, part});
    }
    call.outputs = {{type, whole}};
    auto out = call.run();
    std::int64_t before = 0, wrong = 0;
    for (Values& part : call.inputs) {
      for (std::int64_t at = 0; at < part.elements(); ++at) {
        std::vector<std::int64_t> index = index_of(part.spec().shape, at);
        index[static_cast<std::size_t>(axis)] += before;
        wrong += !same_element(out[0], place(whole, index), part, at);
      }
      before += part.spec().shape[axis];
    }
    INFO(name(type) << whole.to_string() << " along axis " << axis);
    CHECK(wrong == 0);
    if (repeat % 50 == 0) check_threads_agree(call);
    back.inputs = {out[0]};
    for (const Values& part : call.inputs) back.inputs.push_back(part);
    back.without_input = ~std::uint64_t{1};
    back.without_output = static_cast<std::uint64_t>(dice.integer(0, 1));
    const auto parts = back.run();
    for (std::size_t i = back.without_output; i < parts.size(); ++i)
      CHECK(parts[i].same_bits(call.inputs[i]));
  }
}
