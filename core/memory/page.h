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

// The data of a page, as JSON. `comparison` is the JSON of a comparison, or "null". A live page
// asks its server for newer data.
std::string page_data(const std::string& title, const Device* device, std::span<const PageRun> runs,
                      const std::string& comparison = "null", bool is_live = false);

// A page for browsers with that data: one file with script and style, which loads nothing else.
std::string page_of(const std::string& data);

// Writes such a page. Throws FileError.
void write_page(const std::string& path, const std::string& title, const Device* device,
                std::span<const PageRun> runs, const std::string& comparison = "null");

}  // namespace ebb::memory::detail
