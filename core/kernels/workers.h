#pragma once
#include <cstdint>
#include <memory>

namespace ebb {

// The threads that compute on the CPU: one pool for the process. Work is cut by shape alone, so
// neither the number of threads nor their share of the pieces ever changes a result.
class Workers {
 public:
  static Workers& instance();
  ~Workers();

  // The number of threads that compute, the calling one included. Initially the environment's
  // EBB_THREADS, else the processors this process may use.
  int threads() const noexcept;
  // Not while a kernel runs. Throws Error for less than 1.
  void set_threads(int threads);

  // Calls body(piece) for each piece in [0, pieces), on this thread and the others, and returns
  // when all are done. body must not throw and must not call run(). Pieces are handed out
  // dynamically. With one thread, one piece, or when called from inside a piece or while another
  // thread runs a job, everything runs on the calling thread.
  template <class Body>
  void run(std::int64_t pieces, const Body& body) {
    run_pieces(
        pieces,
        [](const void* context, std::int64_t piece) {
          (*static_cast<const Body*>(context))(piece);
        },
        &body);
  }

 private:
  Workers();
  void run_pieces(std::int64_t pieces, void (*call)(const void*, std::int64_t),
                  const void* context);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Flush-to-zero and denormals-are-zero for the calling thread, set when a thread first computes and
// left on: denormals slow a training step several times. Cheap to call again.
void flush_denormals_on_this_thread() noexcept;

}  // namespace ebb
