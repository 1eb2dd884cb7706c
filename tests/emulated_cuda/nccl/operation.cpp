#if __has_include(<nccl.h>)
#include "ebb/tests/emulated_cuda/nccl/operation.h"

#include <cstring>

#include "ebb/tests/emulated_cuda/memory/address_space.h"
#include "ebb/tests/emulated_cuda/queues/work.h"

namespace ebb::emulated {
namespace {

// Deliberately the harder case: in another order than the ranks', and a NaN may get lost.
template <class T>
void sum(const NcclBoard& board, int size, const NcclCall& call, std::uint64_t first, T* to) {
  const auto from = [&](int k) { return reinterpret_cast<const T*>(board.ranks[k].room) + first; };
  for (std::uint64_t i = 0; i < call.count; ++i) {
    T all = from(size - 1)[i];
    for (int k = size - 1; k-- > 0;) {
      const T next = from(k)[i];
      all = call.op != ncclMax ? static_cast<T>(all + next) : next > all ? next : all;
    }
    to[i] = call.op == ncclAvg ? static_cast<T>(all / static_cast<T>(size)) : all;
  }
}

const char* reduce(const NcclBoard& board, int size, const NcclCall& call, std::uint64_t first,
                   void* to) {
  if (call.op != ncclSum && call.op != ncclMax && call.op != ncclAvg) return "no such sum here";
  if (call.type == ncclFloat32) sum(board, size, call, first, static_cast<float*>(to));
  if (call.type == ncclFloat64) sum(board, size, call, first, static_cast<double*>(to));
  if (call.type == ncclInt32) sum(board, size, call, first, static_cast<std::int32_t*>(to));
  if (call.type == ncclInt64) sum(board, size, call, first, static_cast<std::int64_t*>(to));
  return call.type == ncclUint8 ? "no sums of this type here" : "";
}

// The n-th message from `sender` to `receiver`.
const NcclCall* message(const NcclBoard& board, int sender, int receiver, int n) {
  const NcclBoard::Rank& rank = board.ranks[sender];
  for (int i = 0; i < rank.count; ++i)
    if (const NcclCall& call = rank.calls[i];
        call.kind == NcclKind::send && call.peer == receiver && n-- == 0)
      return &call;
  return nullptr;
}

// Copies a call's elements to the rank's room.
std::string post(NcclBoard::Rank& mine, int own, int size, NcclCall call, std::uint64_t& used) {
  const auto ranks = static_cast<std::uint64_t>(size);
  const std::uint64_t bytes = call.bytes();
  const std::uint64_t in = bytes * (call.kind == NcclKind::reduce_scatter ? ranks : 1);
  const std::uint64_t out = bytes * (call.kind == NcclKind::all_gather ? ranks : 1);
  const Outcome outcome =
      check_parts({{call.from, call.from ? in : 0, "NCCL"}, {call.to, call.to ? out : 0, "NCCL"}});
  if (!outcome.ok()) return outcome.text;
  const auto* const from = static_cast<const std::byte*>(call.from);
  const auto* const to = static_cast<const std::byte*>(call.to);
  const std::uint64_t part = bytes * static_cast<unsigned>(own);
  const std::byte* const in_place = call.kind == NcclKind::all_gather       ? from - part
                                    : call.kind == NcclKind::reduce_scatter ? from + part
                                                                            : from;
  if (from && to && to != in_place && from < to + out && to < from + in)
    return "source and target overlap";
  call.at = used;
  if (from) used += in;
  if (used > NcclBoard::kRoomBytes || mine.count == NcclBoard::kMostCalls) return "too much here";
  if (from) std::memcpy(mine.room + call.at, address_space().alias(from), in);
  mine.calls[mine.count++] = call;
  return "";
}

}  // namespace

std::uint64_t NcclCall::bytes() const noexcept {
  return count * (type == ncclFloat32 || type == ncclInt32 ? 4 : type == ncclUint8 ? 1 : 8);
}

std::string run_operation(NcclBoard& board, int own, int size, std::uint64_t number,
                          const std::vector<NcclCall>& calls,
                          const std::function<bool(const std::function<bool()>&)>& wait_for) {
  NcclBoard::Rank& mine = board.ranks[own];
  std::uint64_t used = 0;
  mine.count = 0;
  for (const NcclCall& call : calls)
    if (std::string mistake = post(mine, own, size, call, used); !mistake.empty()) return mistake;
  const auto all_have = [&](std::atomic<std::uint64_t> NcclBoard::Rank::*done) {
    mine.*done = number + 1;
    return wait_for([&] {
      for (int k = 0; k < size; ++k)
        if (board.ranks[k].*done <= number) return false;
      return true;
    });
  };
  if (!all_have(&NcclBoard::Rank::posted)) return "";
  int received[NcclBoard::kMostRanks] = {};
  for (const NcclCall& call : calls) {
    auto* const to = static_cast<std::byte*>(address_space().alias(call.to));
    const std::uint64_t bytes = call.bytes();
    const bool is_message = call.kind == NcclKind::send || call.kind == NcclKind::receive;
    for (int k = 0; k < size && !is_message; ++k)
      if (const NcclCall& other = board.ranks[k].calls[0];
          other.kind != call.kind || other.count != call.count || other.type != call.type ||
          other.op != call.op || other.peer != call.peer)
        return "the ranks do not make the same call";
    std::string mistake;
    switch (call.kind) {
      case NcclKind::all_gather:
        for (int k = 0; k < size; ++k)
          std::memcpy(to + static_cast<unsigned>(k) * bytes, board.ranks[k].room, bytes);
        break;
      case NcclKind::broadcast:
        std::memcpy(to, board.ranks[call.peer].room, bytes);
        break;
      case NcclKind::all_reduce:
        mistake = reduce(board, size, call, 0, to);
        break;
      case NcclKind::reduce_scatter:
        mistake = reduce(board, size, call, call.count * static_cast<unsigned>(own), to);
        break;
      case NcclKind::send:
        break;
      case NcclKind::receive:
        const NcclCall* const sent = message(board, call.peer, own, received[call.peer]++);
        if (!sent || sent->bytes() != bytes) return "a message was not sent, or has another size";
        std::memcpy(to, board.ranks[call.peer].room + sent->at, bytes);
        break;
    }
    if (!mistake.empty()) return mistake;
  }
  for (int k = 0; k < size; ++k)
    if (message(board, k, own, received[k])) return "a message was not received";
  static_cast<void>(all_have(&NcclBoard::Rank::taken));
  return "";
}

}  // namespace ebb::emulated
#endif
