// NCCL between processes of a machine, by the header of the toolkit; without that there is none.
// Communicators do not block, and make one group at a time. The thread of each does what a GPU does
// by itself.
#if __has_include(<nccl.h>)
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/nccl/operation.h"

using namespace ebb::emulated;

namespace ebb::emulated {
struct NcclTask {
  QueuePtr queue = {};
  std::uint64_t after = 0;           // entries of the queue before it
  std::vector<NcclCall> calls = {};  // none: the end
};
}  // namespace ebb::emulated

namespace {
ncclResult_t mistake(const std::string& text) {
  const auto lock = machine().lock();
  machine().complain("NCCL: " + text);
  return ncclInvalidUsage;
}
}  // namespace

struct ncclComm {
  ~ncclComm() {
    is_over = true;
    wake.notify_all();
    if (thread.joinable()) thread.join();
    if (board) ::munmap(board, sizeof(*board));
  }
  void work();
  void run(const NcclTask& task);
  // False: the condition will never hold, since the communicator is over.
  bool wait_for(const std::function<bool()>& condition);
  bool has_failed() const { return state != ncclSuccess && state != ncclInProgress; }
  // NCCL goes on with the call by itself: it is not done yet when that is first asked.
  ncclResult_t begin() {
    polls = 2;
    return ncclInProgress;
  }
  void push(NcclTask task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
    wake.notify_all();
  }

  const std::string file;
  const int rank, size;
  NcclBoard* board = nullptr;
  OwnMemory memory = {};
  std::atomic<ncclResult_t> state = ncclInProgress;
  std::atomic<int> polls = 0;
  std::atomic<bool> is_over = false;
  std::uint64_t number = 0;
  std::mutex mutex = {};
  std::condition_variable wake = {};
  std::deque<NcclTask> tasks = {};
  std::thread thread = {};
};

bool ncclComm::wait_for(const std::function<bool()>& condition) {
  while (!condition()) {
    if (is_over) return false;
    for (int k = 0; k < size; ++k) {
      const int process = board->ranks[k].process;
      const bool is_gone = process != 0 && ::kill(process, 0) != 0 && errno == ESRCH;
      if ((is_gone || board->ranks[k].has_left) && !condition()) state = ncclRemoteError;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

void ncclComm::work() {
  board->ranks[rank].process = ::getpid();
  const bool are_here = wait_for([&] {
    for (int k = 0; k < size; ++k)
      if (board->ranks[k].process == 0) return false;
    return true;
  });
  if (are_here) state = ncclSuccess;
  if (rank == 0) ::unlink(file.c_str());
  while (true) {
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return is_over || !tasks.empty(); });
    if (tasks.empty()) return;
    const NcclTask task = std::move(tasks.front());
    tasks.pop_front();
    lock.unlock();
    run(task);
    if (task.calls.empty()) return;
  }
}

void ncclComm::run(const NcclTask& task) {
  bool is_stuck = false;
  if (task.queue) {
    auto lock = machine().lock();
    if (!machine().take(lock, task.queue, task.after)) return;
    if (machine().injected(Fault::nccl_later) != cudaSuccess) state = ncclSystemError;
    is_stuck = machine().injected(Fault::nccl_stuck) != cudaSuccess;
    const std::uint64_t delay = machine().random.below(4);
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(delay * 100));
  }
  std::string wrong;
  const auto wait = [&](const auto& condition) { return wait_for(condition); };
  if (!is_stuck && !has_failed())
    wrong = run_operation(*board, rank, size, number++, task.calls, wait);
  if (!wrong.empty()) state = mistake(wrong);
  if (!task.queue) return;
  if (is_stuck || has_failed()) wait_for([] { return false; });
  const auto lock = machine().lock();
  machine().give_back(task.queue);
}

namespace {

struct Group {
  int depth = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<NcclCall> calls = {};
  ncclResult_t result = ncclSuccess;  // of its calls
};
thread_local Group group;

ncclResult_t add(const NcclCall& call, ncclComm_t comm, cudaStream_t stream) {
  if (group.depth == 0) return mistake("a call outside of a group is not emulated");
  if (!comm || comm->state != ncclSuccess || comm->polls > 0)
    return group.result = mistake("a communicator was used before its last call was done");
  const auto is_message = [](const NcclCall& c) {
    return c.kind == NcclKind::send || c.kind == NcclKind::receive;
  };
  if (!group.calls.empty() && (group.comm != comm || group.stream != stream || !is_message(call) ||
                               !is_message(group.calls[0])))
    return group.result = mistake("such a group is not emulated");
  if (call.peer < 0 || call.peer >= comm->size)
    return group.result = mistake("there is no such rank");
  group.comm = comm;
  group.stream = stream;
  group.calls.push_back(call);
  return ncclSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled error (run with NCCL_DEBUG=INFO for details)";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  char name[] = "/tmp/ebb_nccl_XXXXXX";
  const int file = ::mkstemp(name);
  if (file < 0 || ::ftruncate(file, sizeof(NcclBoard)) != 0) return ncclSystemError;
  ::close(file);
  *id = {};
  std::memcpy(id->internal, name, sizeof(name));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
  if (size > NcclBoard::kMostRanks || rank < 0 || rank >= size || config->size != fresh.size ||
      config->magic != fresh.magic || config->version != fresh.version || config->blocking != 0)
    return mistake("only few ranks, and communicators that do not block, are emulated");
  const int file = ::open(id.internal, O_RDWR);
  void* const at = ::mmap(nullptr, sizeof(NcclBoard), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (at == MAP_FAILED) return ncclSystemError;
  *comm = new ncclComm{.file = id.internal, .rank = rank, .size = size};
  (*comm)->board = static_cast<NcclBoard*>(at);
  constexpr std::size_t kOwnBytes = std::size_t{4} << 20;
  if (!(*comm)->memory.take(kOwnBytes)) return ncclUnhandledCudaError;
  (*comm)->thread = std::thread([made = *comm] { made->work(); });
  ++machine().library_objects;
  return (*comm)->begin();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* result) {
  *result = comm->state;
  if (*result == ncclSuccess && comm->polls > 0 && comm->polls-- > 0) *result = ncclInProgress;
  return ncclSuccess;
}

// Returns once all ranks are done with what they have begun.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->state != ncclSuccess || comm->polls > 0) return mistake("destroyed while it goes on");
  comm->push({});
  comm->thread.join();
  --machine().library_objects;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->board->ranks[comm->rank].has_left = true;
  --machine().library_objects;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth != 1) return mistake("a group ends that has not begun, or is within another");
  const Group made = std::exchange(group, {});
  if (made.result != ncclSuccess || made.calls.empty()) return made.result;
  auto lock = machine().lock();
  if (machine().injected(Fault::nccl) != cudaSuccess) return ncclUnhandledCudaError;
  if (machine().check_stream(made.stream, "NCCL") != cudaSuccess) return ncclUnhandledCudaError;
  if (made.stream->capture) {
    machine().complain("NCCL: a capture is not emulated");
    return ncclInvalidUsage;
  }
  const QueuePtr queue = made.stream->queue;
  made.comm->push({queue, queue->asked, made.calls});
  machine().push(
      lock, queue,
      {.work = std::make_shared<FunctionWork>("NCCL", [] { return Outcome{}; }), .is_taken = true});
  return made.comm->begin();
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add({NcclKind::all_reduce, count, type, op, 0, from, to}, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add({NcclKind::reduce_scatter, count, type, op, 0, from, to}, comm, stream);
}
ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return add({NcclKind::all_gather, count, type, 0, 0, from, to}, comm, stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add({NcclKind::broadcast, count, type, 0, root, from, to}, comm, stream);
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add({NcclKind::send, count, type, 0, peer, from, nullptr}, comm, stream);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({NcclKind::receive, count, type, 0, peer, nullptr, to}, comm, stream);
}

}  // extern "C"
#pragma GCC visibility pop
#endif
