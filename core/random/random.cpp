#include "ebb/core/random/random.h"

#include <array>
#include <atomic>

#include "ebb/core/base/process_rank.h"
#include "ebb/core/random/random_key.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {
namespace detail {
namespace {

// The key of a thread that was given no seed: threads are numbered in the order in which they first
// ask, so a program's first thread always has the same.
Generator unseeded() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  return {.key = derive_key(0, Purpose::thread, threads.fetch_add(1, std::memory_order_relaxed))};
}

}  // namespace

std::uint64_t by_rank(std::uint64_t key) noexcept {
  const auto rank = static_cast<std::uint64_t>(process_rank().load(std::memory_order_relaxed));
  return rank == 0 ? key : derive_key(key, Purpose::rank, rank);
}

Generator& generator() noexcept {
  thread_local Generator generator = unseeded();
  return generator;
}

Tensor next_draw(const Tensor& like, CallSite site) {
  if (like.is_symbolic()) return like.impl()->recorder->draw(site);
  return next_draw(like.device(), site);
}

Tensor next_draw(const Device& device, CallSite site) {
  if (Recorder* const tracing = tape_mode().tracing) return tracing->draw(site);
  Generator& generator = detail::generator();
  const std::array<std::int64_t, 2> draw = {static_cast<std::int64_t>(by_rank(generator.key)),
                                            static_cast<std::int64_t>(generator.counter)};
  Tensor tensor = Tensor::from(draw, {2}, device, site);
  ++generator.counter;  // not if memory ran out
  return tensor;
}

std::uint64_t next_key() noexcept {
  Generator& generator = detail::generator();
  return first_words(Philox::draw(generator.key, generator.counter++, 0));
}

std::uint64_t session_key(std::optional<Seed> seed) noexcept {
  return by_rank(seed ? derive_key(seed->value, Purpose::session) : next_key());
}

}  // namespace detail

void set_seed(Seed seed) noexcept {
  detail::generator() = {.key = detail::derive_key(seed.value, detail::Purpose::eager)};
}

}  // namespace ebb
