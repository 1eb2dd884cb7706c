// Collectives between GPUs. The kernels wait until the ranks have said that they do the same, on
// the host; then NCCL sends, in a stream of its own.
#include "ebb/core/kernels/collective.h"

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/fill.h"
#include "ebb/kernels/cuda/runtime/nccl.h"
#include "ebb/optim/kernels/accumulator.h"

namespace ebb::cuda {
namespace {

Communicator& world_of(const KernelContext& context) noexcept {
  return *context.attribute<CollectiveAttributes>().world;
}

// to[i] = the ranks' from[k][i] in their order, as on the CPU.
template <class T>
struct CombineRanks {
  const T* from;
  T* to;
  std::int64_t count;
  int ranks;
  ReduceOp op;

  template <int N>
  __device__ void at(std::int64_t i) const {
    using C = Accumulate<T>;
    C all = static_cast<C>(from[i]);
    for (int k = 1; k < ranks; ++k) {
      const C next = static_cast<C>(from[k * count + i]);
      if (op != ReduceOp::max)
        all = static_cast<C>(all + next);
      else if (next > all || next != next)
        all = next;
    }
    to[i] = static_cast<T>(all);
    if (op == ReduceOp::mean) to[i] = static_cast<T>(static_cast<C>(to[i]) / static_cast<C>(ranks));
  }
};

#if EBB_HAS_NCCL
// NCCL's own collective.
Status put(const Collective& c, int size, NcclLink& link, CudaStream& stream) {
  const std::size_t bytes = c.spec.bytes(), count = bytes / size_of(c.spec.dtype);
  const ncclDataType_t type = c.spec.dtype == DType::f32   ? ncclFloat32
                              : c.spec.dtype == DType::f64 ? ncclFloat64
                              : c.spec.dtype == DType::i32 ? ncclInt32
                                                           : ncclInt64;
  const ncclRedOp_t op = c.op == ReduceOp::max    ? ncclMax
                         : c.op == ReduceOp::mean ? ncclAvg
                                                  : ncclSum;
  if (count == 0) return {};
  return link.put(stream, [&](const Nccl& nccl, ncclComm_t to, cudaStream_t in) {
    if (c.kind == Collective::all_gather)
      nccl.ncclAllGather(c.from, c.to, bytes, ncclUint8, to, in);
    else if (c.kind == Collective::broadcast)
      nccl.ncclBroadcast(c.from, c.to, bytes, ncclUint8, c.root, to, in);
    else if (c.kind == Collective::reduce_scatter)
      nccl.ncclReduceScatter(c.from, c.to, count / static_cast<std::size_t>(size), type, op, to,
                             in);
    else
      nccl.ncclAllReduce(c.from, c.to, count, type, op, to, in);
  });
}

// Messages to and from every rank: body(rank, send(data, bytes), receive(data, bytes)).
template <class Body>
Status trade(int size, NcclLink& link, CudaStream& stream, const Body& body) {
  return link.put(stream, [&](const Nccl& nccl, ncclComm_t to, cudaStream_t in) {
    for (int k = 0; k < size; ++k) {
      const auto send = [&](const void* data, std::size_t bytes) {
        if (bytes > 0) nccl.ncclSend(data, bytes, ncclUint8, k, to, in);
      };
      const auto receive = [&](void* data, std::size_t bytes) {
        if (bytes > 0) nccl.ncclRecv(data, bytes, ncclUint8, k, to, in);
      };
      body(k, send, receive);
    }
  });
}

// Each rank sends its share of `elements`, which lies in its place in `data`, to the others.
Status send_shares(std::byte* data, std::int64_t elements, std::size_t item, const Communicator& of,
                   NcclLink& link, CudaStream& stream) {
  const int rank = of.rank(), size = of.size();
  const auto at = [&](int k) {
    return data + static_cast<std::size_t>(detail::share_begin(elements, size, k)) * item;
  };
  const auto bytes = [&](int k) {
    return static_cast<std::size_t>(detail::share_of(elements, size, k)) * item;
  };
  return trade(size, link, stream, [&](int k, const auto& send, const auto& receive) {
    if (k == rank) return;
    send(at(rank), bytes(rank));
    receive(at(k), bytes(k));
  });
}

// Each rank sums its share of the elements, in the order of the ranks, and sends it to the others.
Status put_in_order(const Collective& c, const KernelContext& context, NcclLink& link,
                    CudaStream& stream) {
  const int rank = world_of(context).rank(), size = world_of(context).size();
  const std::size_t item = size_of(c.spec.dtype), sum_item = size_of(c.sum_dtype);
  const auto elements = static_cast<std::int64_t>(c.spec.bytes() / item);
  const auto count = [&](int k) { return detail::share_of(elements, size, k); };
  const auto begin = [&](int k) { return detail::share_begin(elements, size, k); };
  const std::int64_t own = count(rank);
  const auto* const from = static_cast<const std::byte*>(c.from);
  auto* const parts = static_cast<std::byte*>(c.workspace);
  auto* const rows =
      reinterpret_cast<std::int64_t*>(parts + c.workspace_bytes(size)) - (c.adds ? size : 0);
  auto* const to = static_cast<std::byte*>(c.to);
  const bool scatters = c.kind == Collective::reduce_scatter;
  std::byte* const sums = to + (scatters ? 0 : begin(rank) * sum_item);
  EBB_TRY(trade(size, link, stream, [&](int k, const auto& send, const auto& receive) {
    send(from + begin(k) * item, count(k) * item);
    receive(parts + k * own * item, own * item);
    if (!c.adds) return;
    send(context.inputs[2].data, sizeof(*rows));
    receive(rows + k, sizeof(*rows));
  }));
  EBB_TRY(link.join(stream));
  for (int k = 0; k < size && c.adds && own > 0; ++k) {
    const Buffer inputs[] = {{sums, {c.sum_dtype, {own}}},
                             {parts + k * own * item, {c.spec.dtype, {own}}},
                             {rows + k, {DType::i64, {}}}};
    KernelContext adding = context;
    adding.inputs = inputs;
    adding.outputs = {inputs, 1};
    EBB_TRY(accumulate(adding));
  }
  if (!c.adds)
    EBB_TRY(for_stored(c.spec.dtype, [&]<class T>(T) {
      const CombineRanks<T> combine{reinterpret_cast<const T*>(parts), reinterpret_cast<T*>(sums),
                                    own, size, c.op};
      return for_each<1>(stream.get(), combine, own, true);
    }));
  if (scatters) return {};
  return send_shares(to, elements, sum_item, world_of(context), link, stream);
}

// Sends beside the work in the stream.
Status send(Collective& c, const KernelContext& context) {
  if (!nccl())
    return Status::refuse(
        "sends tensors of GPUs by NCCL, whose libnccl.so.2 was not found (EBB_NCCL_LIBRARY may "
        "name its file)");
  Communicator& world = world_of(context);
  CudaStream& stream = cuda_stream(context.stream);
  NcclLink* link = nullptr;
  c.on_gpu = true;
  EBB_TRY(world.begin(c));
  EBB_TRY(world.finish(c.to));
  EBB_TRY(NcclLink::of(world, stream, link));
  if (c.kind == Collective::gather_shares)
    return send_shares(static_cast<std::byte*>(c.to),
                       detail::product(c.spec.shape, 0, c.spec.shape.rank()), size_of(c.spec.dtype),
                       world, *link, stream);
  return c.in_order ? put_in_order(c, context, *link, stream) : put(c, world.size(), *link, stream);
}

Status wait(const KernelContext& context) {
  CudaStream& stream = cuda_stream(context.stream);
  NcclLink* link = nullptr;
  EBB_TRY(NcclLink::of(world_of(context), stream, link));
  return link->join(stream);
}
#else
Status wait(const KernelContext&) { return {}; }  // nothing has begun
Status send(Collective&, const KernelContext&) {
  return Status::refuse(
      "sends tensors of GPUs by NCCL, without whose nccl.h ebb was built: install its package for "
      "developers, or collect it by './ebb vendor', and build ebb again");
}
#endif

}  // namespace

Status collective(const KernelContext& context) {
  const auto& a = context.attribute<CollectiveAttributes>();
  const Buffer &x = context.inputs[a.adds ? 1 : 0], &y = context.outputs[0];
  if (a.kind == Collective::gather_shares) {
    const std::int64_t first = detail::share_begin(y.elements(), a.world->size(), a.world->rank());
    const std::int64_t own = detail::share_of(y.elements(), a.world->size(), a.world->rank());
    const std::size_t item = size_of(y.spec.dtype);
    EBB_TRY(answer(cudaMemcpyAsync(y.as<std::byte>() + static_cast<std::size_t>(first) * item,
                                   x.data, static_cast<std::size_t>(own) * item,
                                   cudaMemcpyDeviceToDevice, stream_of(context)),
                   "a share could not be copied"));
    if (a.world->size() == 1) return {};
  } else if (a.world->size() == 1) {
    if (a.adds) return accumulate(context);
    return x.data == y.data || y.elements() == 0 ? Status{} : copy(context);
  }
  Collective c = detail::describe(context);
  c.from = x.data;
  c.to = y.data;
  c.workspace = context.workspace;
  EBB_TRY(send(c, context));
  EBB_TRY(wait(context));
  if (a.kind != Collective::reduce_to || a.world->rank() == a.root) return {};
  return answer(cudaMemsetAsync(y.data, 0, y.spec.bytes(), stream_of(context)),
                "zeros could not be written");
}

Status begin_total(const KernelContext& context) {
  if (world_of(context).size() == 1) return {};
  Collective c = detail::describe(context);
  c.in_order = false;
  c.from = c.to = context.inputs[0].data;
  return send(c, context);
}

Status end_total(const KernelContext& context) {
  return world_of(context).size() == 1 ? Status{} : wait(context);
}

// As they are at the launch: a capture would repeat them for good.
Status rows_in_use(const KernelContext& context) {
  std::int64_t rows = 1;
  EBB_TRY(world_of(context).rows(rows));
  return fill_with(stream_of(context), context.outputs[0].as<std::int64_t>(), rows, 1);
}

}  // namespace ebb::cuda
