// One operation of NCCL, a collective or a group of messages, over memory that processes share.
#pragma once
#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ebb::emulated {

enum class NcclKind : int { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };

struct NcclCall {
  NcclKind kind;
  std::uint64_t count;
  int type, op, peer;  // peer: the root, too
  const void* from;
  void* to;
  std::uint64_t at = 0;  // in the room of the sender

  std::uint64_t bytes() const noexcept;  // count elements
};

// Memory of a communicator's ranks. The file is sparse.
struct NcclBoard {
  static constexpr int kMostRanks = 8, kMostCalls = 64;
  static constexpr std::size_t kRoomBytes = std::size_t{64} << 20;

  struct Rank {
    std::atomic<int> process;                  // 0: not here yet
    std::atomic<bool> has_left;                // before the others
    std::atomic<std::uint64_t> posted, taken;  // operations that others may read, and has read
    int count;
    NcclCall calls[kMostCalls];
    std::byte room[kRoomBytes];  // what its calls send
  };
  Rank ranks[kMostRanks];
};

// Does operation `number`, with the same calls on all ranks, or messages. wait_for(condition) is
// false where it will never hold. Returns the caller's mistake, or nothing.
std::string run_operation(NcclBoard& board, int own, int size, std::uint64_t number,
                          const std::vector<NcclCall>& calls,
                          const std::function<bool(const std::function<bool()>&)>& wait_for);

}  // namespace ebb::emulated
