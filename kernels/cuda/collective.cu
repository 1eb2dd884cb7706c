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
// Messages to and from every rank, as one group: body(rank, send(bytes), receive(bytes)).
template <class Body>
Status trade(const KernelContext& context, NcclLink& link, const Body& body) {
  return link.put(cuda_stream(context.stream), [&](const Nccl& nccl, ncclComm_t to, auto in) {
    for (int k = 0; k < world_of(context).size(); ++k) {
      const auto send = [&](std::span<const std::byte> bytes) {
        if (!bytes.empty()) nccl.ncclSend(bytes.data(), bytes.size(), ncclUint8, k, to, in);
      };
      const auto receive = [&](std::span<std::byte> bytes) {
        if (!bytes.empty()) nccl.ncclRecv(bytes.data(), bytes.size(), ncclUint8, k, to, in);
      };
      body(k, send, receive);
    }
  });
}

// Every rank gets the shares of y that lie in their places on the others.
Status gather(const Buffer& y, const KernelContext& context, NcclLink& link) {
  const int rank = world_of(context).rank(), size = world_of(context).size();
  const std::span<std::byte> own = detail::share_in(y, size, rank);
  if (y.elements() % size == 0)
    return link.put(cuda_stream(context.stream), [&](const Nccl& nccl, ncclComm_t to, auto in) {
      nccl.ncclAllGather(own.data(), y.data, own.size(), ncclUint8, to, in);
    });
  return trade(context, link, [&](int k, const auto& send, const auto& receive) {
    if (k == rank) return;
    send(own);
    receive(detail::share_in(y, size, k));
  });
}

// NCCL's own collective.
Status put(const Collective& c, const KernelContext& context, NcclLink& link) {
  const auto count = static_cast<std::size_t>(c.elements());
  const auto size = static_cast<std::size_t>(world_of(context).size());
  const ncclDataType_t type = c.spec.dtype == DType::f32   ? ncclFloat32
                              : c.spec.dtype == DType::f64 ? ncclFloat64
                              : c.spec.dtype == DType::i32 ? ncclInt32
                                                           : ncclInt64;
  const ncclRedOp_t op = c.op == ReduceOp::max    ? ncclMax
                         : c.op == ReduceOp::mean ? ncclAvg
                                                  : ncclSum;
  if (count == 0) return {};
  if (c.kind == Collective::all_gather) return gather({c.to, c.spec}, context, link);
  return link.put(cuda_stream(context.stream), [&](const Nccl& nccl, ncclComm_t to, auto in) {
    if (c.kind == Collective::broadcast)
      nccl.ncclBroadcast(c.from, c.to, c.spec.bytes(), ncclUint8, c.root, to, in);
    else if (c.kind == Collective::reduce_scatter)
      nccl.ncclReduceScatter(c.from, c.to, count / size, type, op, to, in);
    else
      nccl.ncclAllReduce(c.from, c.to, count, type, op, to, in);
  });
}

// Each rank sums its share of the elements, in the order of the ranks, and sends it to the others.
Status put_in_order(const Collective& c, const KernelContext& context, NcclLink& link) {
  const int rank = world_of(context).rank(), size = world_of(context).size();
  const Buffer x{const_cast<void*>(c.from), c.spec}, y{c.to, {c.sum_dtype, c.spec.shape}};
  const std::int64_t own = detail::share_of(c.elements(), size, rank);
  const std::size_t bytes = detail::share_in(x, size, rank).size();
  auto* const parts = static_cast<std::byte*>(c.workspace);
  std::byte* const rows = parts + c.workspace_bytes(size) - (c.adds ? size * sizeof(c.rows) : 0);
  const bool scatters = c.kind == Collective::reduce_scatter;
  void* const sums = scatters ? c.to : detail::share_in(y, size, rank).data();
  EBB_TRY(trade(context, link, [&](int k, const auto& send, const auto& receive) {
    send(detail::share_in(x, size, k));
    receive({parts + k * bytes, bytes});
    if (!c.adds) return;
    send({context.inputs[2].as<std::byte>(), sizeof(c.rows)});
    receive({rows + k * sizeof(c.rows), sizeof(c.rows)});
  }));
  EBB_TRY(link.join(cuda_stream(context.stream)));
  if (own > 0 && c.adds)
    EBB_TRY(detail::add_parts(accumulate, context, c, parts, sums, own,
                              {reinterpret_cast<const std::int64_t*>(rows), std::size_t(size)}));
  if (!c.adds)
    EBB_TRY(for_stored(c.spec.dtype, [&]<class T>(T) {
      const CombineRanks<T> combine{reinterpret_cast<const T*>(parts), static_cast<T*>(sums), own,
                                    size, c.op};
      return for_each<1>(stream_of(context), combine, own, true);
    }));
  return scatters ? Status{} : gather(y, context, link);
}
#endif

// Sends beside the work in the stream.
Status send(Collective& c, const KernelContext& context) {
  Communicator& world = world_of(context);
  if (world.size() == 1) return {};
#if EBB_HAS_NCCL
  if (!nccl())
    return Status::refuse("needs NCCL: no libnccl.so.2 was found (EBB_NCCL_LIBRARY may name it)");
  NcclLink* link = nullptr;
  c.on_gpu = true;
  EBB_TRY(world.run(c));
  EBB_TRY(NcclLink::of(world, cuda_stream(context.stream), link));
  return c.in_order ? put_in_order(c, context, *link) : put(c, context, *link);
#else
  return Status::refuse(
      "needs NCCL, and ebb was built without nccl.h: install it, or collect it by './ebb vendor', "
      "and build ebb again");
#endif
}

}  // namespace

Status collective(const KernelContext& context) {
  const auto& a = context.attribute<CollectiveAttributes>();
  const Buffer &x = context.inputs[a.adds ? 1 : 0], &y = context.outputs[0];
  const int size = a.world->size(), rank = a.world->rank();
  if (size == 1 && a.adds) return accumulate(context);
  const bool gathers = a.kind == Collective::all_gather;
  if (size == 1 || gathers) {
    const auto own = gathers ? detail::share_in(y, size, rank) : detail::share_in(y, 1, 0);
    if (own.data() != x.data && !own.empty())
      EBB_TRY(answer(cudaMemcpyAsync(own.data(), x.data, own.size(), cudaMemcpyDeviceToDevice,
                                     stream_of(context)),
                     "a rank's own part could not be copied"));
  }
  Collective c = detail::describe(context);
  c.from = x.data;
  c.to = y.data;
  c.workspace = context.workspace;
  EBB_TRY(send(c, context));
  EBB_TRY(end_total(context));
  if (a.kind != Collective::reduce_to || rank == a.root) return {};
  return answer(cudaMemsetAsync(y.data, 0, y.spec.bytes(), stream_of(context)),
                "zeros could not be written");
}

Status begin_total(const KernelContext& context) {
  Collective c = detail::describe(context);
  c.in_order = false;
  c.from = c.to = context.inputs[0].data;
  return send(c, context);
}

Status end_total(const KernelContext& context) {
#if EBB_HAS_NCCL
  if (world_of(context).size() > 1) {
    CudaStream& stream = cuda_stream(context.stream);
    NcclLink* link = nullptr;
    EBB_TRY(NcclLink::of(world_of(context), stream, link));
    return link->join(stream);
  }
#endif
  return {};  // nothing has begun
}

// As they are at the launch: a capture would repeat them for good.
Status rows_in_use(const KernelContext& context) {
  std::int64_t rows = 1;
  EBB_TRY(world_of(context).rows(rows));
  return fill_with(stream_of(context), context.outputs[0].as<std::int64_t>(), rows, 1);
}

}  // namespace ebb::cuda
