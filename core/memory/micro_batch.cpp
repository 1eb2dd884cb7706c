#include "ebb/core/memory/micro_batch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/memory.h"

namespace ebb::memory {

namespace detail {

namespace {

// Answers that are asked for once.
class Fits {
 public:
  Fits(std::size_t limit, const std::function<Need(std::int64_t)>& need)
      : limit_(limit), need_(need) {}

  const Need& need(std::int64_t rows) {
    const auto known = known_.find(rows);
    return known != known_.end() ? known->second : known_.emplace(rows, need_(rows)).first->second;
  }
  bool operator()(std::int64_t rows) { return need(rows).reserved_bytes <= limit_; }

  // The largest number between one that fits and a larger one that does not such that the next does
  // not fit.
  std::int64_t border(std::int64_t fitting, std::int64_t refused) {
    while (refused - fitting > 1) {
      const std::int64_t middle = fitting + (refused - fitting) / 2;
      ((*this)(middle) ? fitting : refused) = middle;
    }
    return fitting;
  }

  // Tries the numbers that MicroBatch promises. Returns the smallest one up to `most` that is then
  // known not to fit.
  std::optional<std::int64_t> first_refused(std::int64_t most, std::int64_t all) {
    constexpr std::int64_t kBelow = 64;
    for (std::int64_t rows = 1; rows <= std::min(most, all); ++rows)
      if (!(*this)(rows)) return rows;
    for (std::int64_t rows = 2; rows <= most; rows *= 2)
      if (!(*this)(rows)) break;
    for (std::int64_t rows = std::max(all, most - std::min(kBelow, all)); rows <= most; ++rows)
      if (!(*this)(rows)) break;
    for (const auto& [rows, need] : known_)
      if (rows <= most && need.reserved_bytes > limit_) return rows;
    return std::nullopt;
  }

 private:
  const std::size_t limit_;
  const std::function<Need(std::int64_t)>& need_;
  std::map<std::int64_t, Need> known_;
};

}  // namespace

MicroBatch fit_rows(const char* what, std::int64_t rows, std::size_t limit,
                    const std::function<Need(std::int64_t)>& need, std::int64_t all) {
  Fits fits(limit, need);
  if (!fits(1))
    ebb::detail::refuse(what, "not even 1 row fits: it takes " +
                                  exact_figure(fits.need(1).reserved_bytes) +
                                  " bytes, and the limit is " + exact_figure(limit));
  std::int64_t size = fits(rows) ? rows : fits.border(1, rows);
  for (;;) {
    // Smaller numbers may need more than larger ones: the search goes on below the first that does.
    std::optional<std::int64_t> refused = fits.first_refused(size, all);
    const std::int64_t rest = rows % size;
    if (!refused && rest > 0 && !fits(rest)) refused = rest;
    if (!refused) break;
    size = fits.border(1, *refused);
  }
  const Need& here = fits.need(size);
  MicroBatch fit{.size = size,
                 .steps = (rows + size - 1) / size,
                 .peak_bytes = here.peak_bytes,
                 .reserved_bytes = here.reserved_bytes};
  if (size < rows) fit.next_reserved_bytes = fits.need(size + 1).reserved_bytes;
  return fit;
}

}  // namespace detail

MicroBatch fit_micro_batch(const Device& device, std::int64_t rows, Limit limit,
                           const std::function<void(Device, std::int64_t)>& program,
                           const PredictOptions& options, CallSite site) {
  constexpr const char* kWhat = "fit_micro_batch";
  const ebb::detail::CallSiteScope scope(site);
  if (rows < 1)
    ebb::detail::refuse(kWhat, "a batch has at least 1 row, not " + std::to_string(rows));
  const std::size_t most =
      std::min(limit.bytes_of(device.runtime().capacity_bytes()), available(device));
  return detail::fit_rows(kWhat, rows, most, [&](std::int64_t size) -> detail::Need {
    // Errors inside the program keep their own lines.
    const ebb::detail::CallSiteScope own({}, ebb::detail::CallSiteScope::innermost);
    const Prediction prediction = predict(
        device, [&](const Device& twin) { program(twin, size); }, options);
    return {prediction.peak_bytes, prediction.least_limit_bytes};
  });
}

}  // namespace ebb::memory
