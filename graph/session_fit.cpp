// Finds the batch that a session out of memory could have run instead.
#include "ebb/graph/session_impl.h"

namespace ebb {

void Session::Impl::rethrow_with_hint(const OutOfMemory& error, const Tensors& fetches,
                                      const Feeding& feeding, const std::vector<Shape>& shapes) {
  std::optional<std::int64_t> batch;
  if (error.reason() != OutOfMemory::Reason::injected &&
      error.reason() != OutOfMemory::Reason::addresses &&
      error.facts().device == device.runtime().profile().name) {
    try {
      batch = largest_batch(fetches, feeding, shapes);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): then there is no hint
    }
  }
  if (!batch) throw;
  OutOfMemory::Facts facts = error.facts();
  facts.fits_no_batch = *batch == 0;
  facts.hints.push_back(*batch == 0
                            ? "not even with 1 row in each feed would this run fit"
                            : "with " + std::to_string(*batch) + (*batch == 1 ? " row" : " rows") +
                                  " in each feed this run would fit");
  throw OutOfMemory(std::move(facts));
}

// Room left on the device, plus memory that the session holds.
std::size_t Session::Impl::room_of_device() const {
  const std::size_t held = pool->reserved_bytes();
  // A resting arena is room already, unless it is part of the memory reserved ahead.
  const std::size_t resting =
      held > preallocated ? device.runtime().profile().in_pages(arena.allocated_bytes()) : 0;
  return device.runtime().allocator().room_bytes() + held - resting;
}

std::size_t Session::Impl::available() const {
  const GraphState::Reading reading(graph.state());
  const std::size_t most = std::min(room_of_device(), pool->stats().limit);
  return most - std::min(most, variables.bytes_beyond_plans());
}

// The largest number of rows, common to all feeds of open length, with which the run fits; 0: not
// even one row fits. Nothing if the feeds share no such number. Found by planning, under the lock.
std::optional<std::int64_t> Session::Impl::largest_batch(const Tensors& fetches,
                                                         const Feeding& feeding,
                                                         const std::vector<Shape>& shapes) {
  constexpr std::size_t kMostNodes = 20'000;  // more would take too long
  if (graph.state().nodes().size() > kMostNodes) return std::nullopt;
  std::int64_t rows = 0;
  FedShapes whole;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    whole.push_back({feeding.placeholders[i], shapes[i]});
    if (!detail::has_open_rows(feeding.placeholders[i].shape())) continue;
    if (rows != 0 && rows != shapes[i][0]) return std::nullopt;
    rows = shapes[i][0];
  }
  if (rows == 0) return std::nullopt;
  const memory::Stats held = pool->stats();
  const memory::Profile& profile = device.runtime().profile();
  const std::size_t room = room_of_device();
  // Fetches get nothing of the memory that the session reserves ahead.
  const std::size_t ahead = held.reserved.current <= preallocated ? held.reserved.current : 0;
  const auto fits = [&](std::int64_t batch) {
    const detail::Program program =
        detail::make_program(graph.state(), fetches, detail::with_rows(whole, batch),
                             device.runtime(), {.passes = options.passes});
    std::size_t fetched = 0;
    for (const detail::Fetch& fetch : program.fetches)
      fetched += profile.in_pages(fetch.spec.bytes());
    // Memory held for other runs does not give way, except the arena.
    const std::size_t reserved = profile.in_pages(program.plan.arena_bytes) +
                                 variables.reserved_bytes_with(program.variables);
    return reserved <= held.limit && std::max(reserved, ahead) + fetched <= room;
  };
  std::int64_t fitting = 0;
  for (std::int64_t refused = rows; refused - fitting > 1;) {
    const std::int64_t middle = fitting + (refused - fitting) / 2;
    (fits(middle) ? fitting : refused) = middle;
  }
  return fitting;
}

}  // namespace ebb
