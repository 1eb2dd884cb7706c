#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ebb/allocator/event_log.h"
#include "ebb/core/device/device.h"
#include "ebb/core/memory/plan.h"

namespace ebb::memory::detail {

// One run on the page: the events of a device, plans of its sessions, or both.
struct PageRun {
  std::string name;
  std::shared_ptr<const EventLog> log = {};
  bool is_relative = false;              // shows bytes above those held before the first event
  std::size_t predicted_peak_bytes = 0;  // 0: unknown
  std::span<const Plan> plans = {};
};

// Writes a page for browsers: one file with script, style and data, which loads nothing else.
// `comparison` is the JSON of a comparison, or "null". Throws FileError.
void write_page(const std::string& path, const std::string& title, const Device* device,
                std::span<const PageRun> runs, const std::string& comparison = "null");

}  // namespace ebb::memory::detail
