// Kernels that exchange tensors between the ranks of a world.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "ebb/core/kernels/kernel.h"

namespace ebb {

enum class ReduceOp : std::int32_t { sum, mean, max };

// One collective operation of a rank, as its kernel asks for it.
struct Collective {
  enum Kind : std::int32_t {
    all_reduce,      // x to the sum of the ranks' x
    reduce_to,       // likewise on the root, to 0 on all others
    all_gather,      // each rank's share_of() y, in its place in y or from x, to all of y
    reduce_scatter,  // x to this rank's share_of() the sum
    broadcast,       // x to the root's
  };
  // Combines `count` elements: from[k * count + i] of each rank k, in this order, to to[i]. What
  // `to` holds before is the first term if `adds`; parts are weighted by their rank's rows then, as
  // an accumulator does, and a rank without rows is left out.
  using Combine = void (*)(const Collective& collective, const void* from, void* to,
                           std::int64_t count, std::span<const std::int64_t> rows);

  Kind kind = all_reduce;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;
  bool adds = false;
  Spec spec = {};                // of `from`; of `to` where that is gathered
  DType sum_dtype = DType::f32;  // of `to`
  std::int64_t rows = 1;         // of this rank
  const char* name = "";         // of the tensor, the same on every rank; may be empty
  const char* where = "";        // " (train.cpp:12)", for messages
  bool in_order = false;         // ebb sums; else the library does, in an order of its own
  bool on_gpu = false;           // the ranks only compare what they do; their kernels send
  bool is_counted = true;        // among the bytes sent
  const void* from = nullptr;    // may be `to`
  void* to = nullptr;
  void* workspace = nullptr;  // of workspace_bytes()
  Combine combine = nullptr;  // in memory of the host, for sums in order

  std::int64_t elements() const noexcept { return Buffer{nullptr, spec}.elements(); }
  // Refuses more elements than MPI counts.
  Status check() const noexcept;
  // Bytes of parts of all ranks, for sums in order, and behind them of their rows, for a GPU.
  std::size_t workspace_bytes(int size) const noexcept;
  // Bytes that a rank sends at least, where what it passes on counts too: of an all_reduce of n
  // bytes 2 (size - 1) / size n (Patarasuk & Yuan, J. Parallel Distrib. Comput. 69, 2009).
  std::uint64_t sent_bytes(int rank, int size) const noexcept;
  // Messages that a rank sends one after the other where the ranks are a ring: 2 (size - 1) of an
  // all_reduce (ibid.), of others half as many.
  std::uint64_t messages(int size) const noexcept;
};

// A world's connection between GPUs of its ranks, made by their kernels.
class DeviceLink : NoCopy {
 public:
  virtual ~DeviceLink() = default;  // all ranks end theirs, unless it has been cut
  // Waits some seconds for what is under way, then ends it, also where other ranks notice.
  virtual void cut() noexcept = 0;
};

// A rank's connection to the others. core/device/world.h implements it.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual std::chrono::steady_clock::time_point made_at() const noexcept = 0;
  // Whether the ranks' sums are made in the order of the ranks.
  virtual bool is_ordered() const noexcept = 0;
  // Begins a collective and returns. Its memory must stay until finish().
  virtual Status begin(const Collective& collective) noexcept = 0;
  // Waits for the collective that writes to `to`. An error's text lives as long as the process.
  virtual Status finish(const void* to) noexcept = 0;
  Status run(const Collective& collective) noexcept {
    const Status begun = begin(collective);
    return begun.ok() ? finish(collective.to) : begun;
  }
  // The link that kernels of a device have made, null at first. It goes where the world ends.
  virtual std::unique_ptr<DeviceLink>& link(const void* device) = 0;
  // Rows of this rank in the batch that is in use; 1 where no loader of the world has given one.
  virtual Status rows(std::int64_t& rows) const noexcept = 0;
  // Waits for whatever is under way, before memory goes that it uses.
  virtual void drain() noexcept = 0;
  // Tells the other ranks that this one cannot go on, by the cause of it.
  virtual void fail(const std::string& cause) noexcept = 0;
  // Counts the bytes of a collective on a simulated device, where nothing is sent.
  virtual Status count(const Collective& collective) noexcept = 0;
};

struct CollectiveAttributes {
  Communicator* world = nullptr;  // lives as long as the process
  const char* name = "";          // likewise, of the tensor; the same on every rank
  const char* where = "";         // likewise, the line
  Collective::Kind kind = Collective::all_reduce;
  ReduceOp op = ReduceOp::sum;
  std::int32_t root = 0;
  std::int32_t adds = 0;  // see Collective
  Shape whole = {};       // of what shares are gathered from another tensor to
};

namespace detail {
// Elements of rank k when `elements` are dealt out to `size` ranks.
constexpr std::int64_t share_of(std::int64_t elements, int size, int rank) noexcept {
  const std::int64_t each = (elements + size - 1) / size;
  const std::int64_t left = elements - each * rank;
  return left < 0 ? 0 : left < each ? left : each;
}
// The first of them.
constexpr std::int64_t share_begin(std::int64_t elements, int size, int rank) noexcept {
  const std::int64_t begin = (elements + size - 1) / size * rank;
  return begin < elements ? begin : elements;
}
// The bytes of rank k's elements in a tensor.
inline std::span<std::byte> share_in(const Buffer& whole, int size, int rank) noexcept {
  const std::int64_t elements = whole.elements();
  const auto item = static_cast<std::int64_t>(size_of(whole.spec.dtype));
  return {whole.as<std::byte>() + share_begin(elements, size, rank) * item,
          static_cast<std::size_t>(share_of(elements, size, rank) * item)};
}
// The collective of an application: `first` is its first input, `part` what a rank adds. It has no
// memory yet. Ebb sums numbers of 16 bits itself, which MPI does not know, and finds the greatest
// of numbers that may be NaN, which a library may drop.
Collective describe(const Spec& first, const Spec& part, const CollectiveAttributes& attributes);
Collective describe(const KernelContext& context);
// A Combine of parts that are added: by a device's accumulate, in the stream of `context`.
Status add_parts(Kernel accumulate, KernelContext context, const Collective& collective,
                 const void* from, void* to, std::int64_t count,
                 std::span<const std::int64_t> rows);
}  // namespace detail

namespace cpu {
// Input x; output y, as CollectiveAttributes::kind says. If it adds: inputs total*, part, rows (i64
// scalar), total += sum of rows part over the ranks, in their order.
KernelFunction collective;
MemoryFunction collective_memory;
// The same on a simulated device: counts the bytes that a rank would send.
KernelFunction count_collective;
// Input total*: begins to sum it over the ranks in place.
KernelFunction begin_total;
// Input total*: waits until that is done.
KernelFunction end_total;
// Output: rows of this rank in the batch that is in use, an i64 scalar.
KernelFunction rows_in_use;
}  // namespace cpu

// On a GPU they have the same names, and send by NCCL.

}  // namespace ebb
