// A world behind its handles.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ebb/core/device/transport.h"
#include "ebb/core/device/world.h"

namespace ebb::detail {

class Messenger;

// The ranks' side of a world. Lives as long as the process, since operators refer to it.
class WorldState final : public Communicator {
 public:
  // Without transports: alone, or a rank that is not there.
  WorldState(int rank, int size, const distributed::WorldOptions& options);
  WorldState(std::unique_ptr<Transport> headers, std::unique_ptr<Transport> data,
             const distributed::WorldOptions& options);

  // Keeps a world as long as the process.
  static WorldState& keep(std::unique_ptr<WorldState> world);

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  std::chrono::steady_clock::time_point made_at() const noexcept override { return made_at_; }
  bool is_ordered() const noexcept override { return options_.ordered; }
  distributed::Sharding sharding() const noexcept { return options_.sharding; }
  // Whether there are other ranks to reach, or none at all.
  bool is_real() const noexcept { return size_ == 1 || is_connected_; }

  Status begin(const Collective& collective) noexcept override;
  Status finish(const void* to) noexcept override;
  std::unique_ptr<DeviceLink>& link(const void* device) override { return links_[device]; }
  Status rows(std::int64_t& rows) const noexcept override;
  Status count(const Collective& collective) noexcept override;

  void drain() noexcept override;
  // The values of all ranks, in their order. `name` says what for. Throws Error.
  std::vector<std::int64_t> exchange(const std::string& name, std::int64_t value);
  // Likewise texts. Throws Error for a simulated world of several ranks.
  std::vector<std::string> gather(const std::string& name, const std::string& text);
  WorldState& split(int color);
  // Throws Error where a rank does not close.
  void close();
  // Tells the other ranks that this one is over, by the cause of it, when they next use the world.
  // Does not wait for that: they may be waiting in another world.
  void fail(const std::string& cause) noexcept override;

  std::uint64_t sent_bytes() const noexcept { return sent_bytes_.load(std::memory_order_relaxed); }

  // A batch of a loader that is in use, of which this rank has `rows`.
  void add_batch(std::int64_t rows);
  bool has_batch() const noexcept;
  void remove_batch(std::int64_t rows) noexcept;

 private:
  friend class Messenger;
  static constexpr const char* kClosed = "this world is closed";  // its failure_ then
  // What a rank tells the others before data move.
  struct Header {
    std::uint64_t number = 0;     // of collectives before it
    std::uint64_t signature = 0;  // equal for equal collectives
    std::int64_t value = 0;       // the rank's rows, or what it exchanges
    std::int64_t ending = 0;      // 1: the rank closes; 2: it has failed

    bool agrees_with(const Header& other) const noexcept {
      return number == other.number && signature == other.signature && ending == other.ending;
    }
  };
  struct Operation {
    Collective collective = {};
    std::string text = {};  // for messages
    Header mine = {};
    std::vector<Header> all = {};
    std::vector<char> texts = {};       // of all ranks, where they differ
    int transfers = 0;                  // of data, one after the other
    std::function<void()> action = {};  // in place of them
    Transport::Started transfer = {};
    int step = 0;  // transfers that have begun, that of the headers first
    enum { under_way, done, failed } state = under_way;  // guarded by the messenger's mutex
  };

  bool tells_of_failure() const;
  void cut_links() noexcept;
  std::shared_ptr<Operation> enqueue(Operation operation);
  void wait(std::unique_lock<std::mutex>& lock, const Operation& operation) noexcept;
  // Waits for it. Throws Error where it has failed.
  std::shared_ptr<Operation> perform(Operation operation);
  // Each rank gives the same `what`, and a line of its own.
  static Operation asks(const std::string& what, const std::string& where, std::int64_t value = 0);
  static Operation closing();
  // On the messenger's thread: goes on with the first operation as far as it can. Returns whether
  // anything happened.
  bool advance();
  // Returns why the world is over; empty: it goes on.
  std::string advance(Operation& operation);
  std::string explain(const Operation& operation) const;
  Transport::Started begin_transfer(const Operation& operation, int step);

  const std::chrono::steady_clock::time_point made_at_ = std::chrono::steady_clock::now();
  int rank_ = 0, size_ = 1;
  const distributed::WorldOptions options_;
  Messenger& messenger_;
  bool is_connected_ = false;
  std::unique_ptr<Transport> headers_, data_;  // touched by the messenger's thread alone
  std::atomic<std::uint64_t> sent_bytes_{0};
  std::map<const void*, std::unique_ptr<DeviceLink>> links_;  // used by the world's thread

  // Guarded by the messenger's mutex.
  std::deque<std::shared_ptr<Operation>> queue_;
  std::vector<std::shared_ptr<Operation>> begun_;  // by begin(), until finish()
  std::uint64_t next_number_ = 0;
  std::string failure_;  // not empty: the world is over. Set once
  std::vector<std::int64_t> batches_;
};

// Opens the job's world: alone without a launcher. Throws Error.
WorldState& open_world(const distributed::WorldOptions& options);

// What World() returns on this thread in place of the job's; null: the job's. For predictions.
WorldState*& predicted_world() noexcept;
// Counts what this thread's collectives on simulated devices would send.
struct Sent {
  std::uint64_t bytes = 0, messages = 0;
};
Sent& counted() noexcept;

}  // namespace ebb::detail
