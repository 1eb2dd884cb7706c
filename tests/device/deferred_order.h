// Who has to come after whom on the deferred device, and whether all who share memory do.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ebb::tests {

// What the work of each stream comes after, from streams' waits and from what the host has waited
// for; and, byte by byte, who wrote last and who has read since. Two that use the same byte, one of
// them writing, must be in order: otherwise what is computed depends on chance, even where the
// order that came to pass was right.
class DeferredOrder {
 public:
  struct Use {
    const void* address = nullptr;
    std::size_t bytes = 0;
    bool writes = false;
  };

  // `stream`, from 1, comes after what `other` has been asked for so far.
  void wait(std::size_t stream, std::size_t other);
  // All of it is done, and what it waited for; the host knows it, as does what is asked for later.
  void host_waited(std::size_t stream);
  void host_waited_for_all();
  // The next work of a stream. Says which earlier work it should have waited for, if there is such,
  // and then does not count it.
  std::string use(std::size_t stream, const char* name, const std::vector<Use>& uses);
  void forget(const void* base, std::size_t bytes);

 private:
  // Of each stream, how much of its work comes before.
  using Clock = std::vector<std::uint64_t>;
  struct Access {
    std::size_t stream = 0;  // 0: none
    std::uint64_t number = 0;
    const char* name = "";
  };
  struct Span {
    std::uintptr_t end = 0;
    Access write = {};
    std::vector<Access> reads = {};  // since then, the last of each stream
  };
  using Spans = std::map<std::uintptr_t, Span>;

  Clock& clock_of(std::size_t stream);
  static void merge(Clock& into, const Clock& from);
  static bool before(const Access& access, const Clock& clock);
  // The first span that begins at or after it, with none that goes across.
  Spans::iterator cut(std::uintptr_t at);

  std::vector<Clock> clocks_;
  Clock host_;
  Spans spans_;
};

}  // namespace ebb::tests
