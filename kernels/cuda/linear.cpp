#include "ebb/core/kernels/linear.h"

#include <vector>

#include "ebb/kernels/cuda/epilogue.h"
#include "ebb/kernels/cuda/plans/linear_products.h"
#include "ebb/kernels/cuda/product.h"

namespace ebb::cuda {
namespace {

const std::vector<Product>& products(const KernelContext& context) noexcept {
  return static_cast<const PreparedProducts*>(context.prepared)->products;
}

detail::Ref<Prepared> prepare_one(const ProductShape& shape, Epilogue epilogue,
                                  const MemoryQuery& query) {
  auto prepared = detail::make_ref<PreparedProducts>();
  prepared->products.emplace_back(shape, epilogue, query);
  return prepared;
}

}  // namespace

detail::Ref<Prepared> matmul_prepare(const MemoryQuery& query) {
  return prepare_one(matmul_product(query).shape, Epilogue::none, query);
}

Status matmul(const KernelContext& context) {
  const Buffer &a = context.inputs[0], &b = context.inputs[1], &out = context.outputs[0];
  const auto run = [&](const MatmulProduct::Offsets& at) {
    const auto moved = [](const Buffer& buffer, std::int64_t elements) {
      return buffer.as<std::byte>() +
             elements * static_cast<std::int64_t>(size_of(buffer.spec.dtype));
    };
    return products(context).front().run(context.stream, {.a = moved(a, at.a),
                                                          .b = moved(b, at.b),
                                                          .c = moved(out, at.c),
                                                          .workspace = context.workspace});
  };
  if (out.spec.shape.rank() == 2) return run({});

  const MatmulProduct of(out.spec.dtype, MatmulLayout(a.spec.shape, b.spec.shape, out.spec.shape,
                                                      context.attribute<MatmulAttributes>()));
  for (std::int64_t launch = 0; launch < of.launches; ++launch) EBB_TRY(run(of(launch)));
  return {};
}

detail::Ref<Prepared> dense_prepare(const MemoryQuery& query) {
  const auto& attributes = query.attribute<DenseAttributes>();
  const bool relu = attributes.activation == Activation::relu, bias = attributes.bias != 0;
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  return prepare_one(forward_product(query.inputs[0].dtype, size),
                     bias   ? (relu ? Epilogue::bias_relu : Epilogue::bias)
                     : relu ? Epilogue::relu
                            : Epilogue::none,
                     query);
}

Status dense(const KernelContext& context) {
  const auto& attributes = context.attribute<DenseAttributes>();
  const Buffer &x = context.inputs[0], &w = context.inputs[1], &y = context.outputs[0];
  const ProductOperands operands{.a = x.data,
                                 .b = w.data,
                                 .c = y.data,
                                 .vector = attributes.bias != 0 ? context.inputs[2].data : nullptr,
                                 .workspace = context.workspace};
  bool fused = false;
  EBB_TRY(products(context).front().run(context.stream, operands, fused));
  const bool done = fused && attributes.activation == Activation::relu;
  const DenseSizes size(x.spec, w.spec);
  return add_bias_and_activate(stream_of(context), y.spec.dtype,
                               done ? Activation::none : attributes.activation, y.data,
                               fused ? nullptr : operands.vector, size.rows, size.out);
}

detail::Ref<Prepared> dense_backward_prepare(const MemoryQuery& query) {
  const DType dtype = query.inputs[0].dtype;
  const DenseSizes size(query.inputs[0], query.inputs[1]);
  auto prepared = detail::make_ref<PreparedProducts>();
  prepared->products.reserve(2);
  if (query.wants(1))
    prepared->products.emplace_back(weight_product(dtype, size),
                                    query.wants(2) ? Epilogue::column_sums : Epilogue::none, query);
  if (query.wants(0))
    prepared->products.emplace_back(input_product(dtype, size), Epilogue::none, query);
  return prepared;
}

Status dense_backward(const KernelContext& context) {
  const Buffer &x = context.inputs[0], &w = context.inputs[1], &da = context.inputs[2];
  const Buffer &dx = context.outputs[0], &dw = context.outputs[1], &db = context.outputs[2];
  const DenseSizes size(x.spec, w.spec);
  // Prepared are only the products that are wanted, dw's first. dw without memory does not mean
  // unwanted: it may be empty.
  const std::vector<Product>& wanted = products(context);
  bool has_sums = false;
  if (dw.data != nullptr)
    EBB_TRY(wanted.front().run(context.stream,
                               {.a = x.data,
                                .b = da.data,
                                .c = dw.data,
                                .vector = db.data,
                                .workspace = context.workspace},
                               has_sums));
  if (db.data != nullptr && !has_sums)
    EBB_TRY(column_sum(stream_of(context), da.spec.dtype, da.data, db.data, size.rows, size.out,
                       context.workspace));
  // Last, since dx may have taken over the memory of x.
  if (dx.data == nullptr) return {};
  return wanted.back().run(
      context.stream, {.a = da.data, .b = w.data, .c = dx.data, .workspace = context.workspace});
}

}  // namespace ebb::cuda
