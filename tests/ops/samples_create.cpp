#include "ebb/core/kernels/create.h"
#include "ebb/core/ops/create.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

Arrays counted(const Application& a) {
  const auto& told = a.attribute<SequenceAttributes>();
  Array out(a.outputs[0].shape);
  for (std::int64_t i = 0; i < out.elements(); ++i)
    out[i] = told.start + static_cast<double>(i) * told.step;
  return {out};
}

// Keeps the elements on one side of a diagonal; the others become 0.
Arrays kept(const Application& a) {
  const auto& told = a.attribute<TriangularAttributes>();
  Array out(a[0].shape);
  std::int64_t next = 0;
  for_each_index(out.shape, [&](const Index& index) {
    const std::int64_t distance = index.back() - index[index.size() - 2];
    const bool keeps = told.upper != 0 ? distance >= told.diagonal : distance <= told.diagonal;
    out[next] = keeps ? a[0][next] : 0;
    ++next;
  });
  return {out};
}

}  // namespace

void create_family(std::vector<Sample>& samples, References&, DType dtype) {
  const auto made = [&](const OpDef& op, const std::string& how, std::function<Tensor()> call,
                        std::function<Arrays(const Application&)> reference) {
    samples.push_back(sample_of(
        op, how, {}, [call = std::move(call)](const Tensors&) -> Tensors { return {call()}; },
        kNoGradient));
    samples.back().reference = std::move(reference);
  };
  for (const double end : {0.0, 1.0, 7.0})
    made(
        arange_op, "up to " + std::to_string(end),
        [=] { return arange(-0.5, end - 0.5, {.step = 0.25, .dtype = dtype}); }, counted);
  made(
      arange_op, "i64", [] { return arange(5); }, counted);
  made(
      arange_op, "i32, backwards", [] { return arange(9, -4, {.step = -3, .dtype = DType::i32}); },
      counted);
  made(
      arange_op, "u8", [] { return arange(250, 256, {.dtype = DType::u8}); }, counted);
  for (const std::int64_t count : {0, 1, 2, 9})
    made(
        linspace_op, std::to_string(count),
        [=] { return linspace(-1, 3, count, {.dtype = dtype}); }, counted);
  const auto identity = [&](const std::string& how, std::int64_t rows, const EyeOptions& options) {
    made(
        eye_op, how, [=] { return eye(rows, options); },
        [](const Application& a) -> Arrays {
          const auto& told = a.attribute<EyeAttributes>();
          Array out(a.outputs[0].shape);
          for (std::int64_t i = 0; i < told.rows; ++i)
            for (std::int64_t j = 0; j < told.columns; ++j)
              out[i * told.columns + j] = j - i == told.diagonal ? 1 : 0;
          return {out};
        });
  };
  identity("square", 4, {.dtype = dtype});
  identity("wide, above", 3, {.columns = 5, .diagonal = 2, .dtype = dtype});
  identity("tall, below", 5, {.columns = 2, .diagonal = -3, .dtype = dtype});
  identity("beyond the corner", 3, {.diagonal = 7, .dtype = DType::u8});
  identity("bool", 3, {.dtype = DType::boolean});
  identity("of many rows", 90, {.columns = 70, .diagonal = 3, .dtype = DType::i32});
  identity("nothing", 0, {.dtype = dtype});
  identity("i64", 2, {.columns = 0, .dtype = DType::i64});

  for (const std::int64_t diagonal : {-1, 0, 2}) {
    const auto add = [&](const OpDef& op, Tensor (*call)(const Operand&, std::int64_t)) {
      for (const Shape& shape : {Shape{kOpen, 4, 5}, Shape{3, kOpen}}) {
        samples.push_back(moving_sample(op, shape.to_string() + ", " + std::to_string(diagonal),
                                        {{shape}}, EBB_CALL(call(in[0], diagonal)), true));
        samples.back().reference = kept;
      }
    };
    add(tril_op, tril);
    add(triu_op, triu);
  }
}

}  // namespace ebb::tests
