#include "ebb/core/memory/marks.h"

#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"

namespace ebb::memory {

namespace {
// A program may free memory from before its start; it then holds nothing of its own.
std::size_t above(std::size_t bytes, std::size_t before) noexcept {
  return bytes > before ? bytes - before : 0;
}

Stats after_release(const Device& device) {
  release_cached(device);
  return stats(device);
}

}  // namespace

std::size_t Footprint::at(const std::string& moment) const {
  for (const Moment& each : moments)
    if (each.name == moment) return each.bytes;
  throw Error("[Footprint] no moment named '" + moment + "' was marked");
}

Marks::Marks(const Device& device)
    : device_(device),
      log_(device.runtime().allocator().recorder()),
      before_(after_release(device)),
      peak_(device) {
  since_mark_.emplace(device_);
}

std::size_t Marks::held() const noexcept {
  return above(device_.runtime().allocator().allocated_bytes(), before_.allocated.current);
}

void Marks::operator()(std::string_view moment) {
  auto& moments = footprint_.moments;
  auto place = std::find_if(moments.begin(), moments.end(),
                            [&](const Moment& each) { return each.name == moment; });
  if (place == moments.end())
    place = moments.insert(place, {std::string(moment), 0, footprint_.steps == 0});
  place->bytes = held();
  if (log_) log_->mark(moment);
  since_mark_.emplace(device_);
}

void Marks::step(const Tensor& loss, CallSite site) {
  if (loss.defined() && !loss.is_symbolic() && loss.device().runtime().has_values())
    losses_.push_back(loss.item<double>({}, site));
  ++footprint_.steps;
  footprint_.step_peak_bytes =
      std::max(footprint_.step_peak_bytes, above(since_mark_->bytes(), before_.allocated.current));
  footprint_.held_between_steps_bytes = held();
  if (log_) log_->step();
  since_mark_.emplace(device_);
}

Footprint Marks::finish() {
  const Stats end = stats(device_);
  const Stats released = after_release(device_);
  footprint_.peak_bytes = above(peak_.bytes(), before_.allocated.current);
  const ByCategory at_peak = peak_.by_category();
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    footprint_.by_category[i] = above(at_peak[i], before_.by_category[i].current);
  footprint_.end_bytes = above(end.allocated.current, before_.allocated.current);
  footprint_.reserved_end_bytes = above(end.reserved.current, before_.reserved.current);
  footprint_.reserved_released_bytes = above(released.reserved.current, before_.reserved.current);
  return footprint_;
}

}  // namespace ebb::memory
