#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

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
  std::string data = {};  // JSON of another rank's runs, in place of all that
};

// The data of a page, as JSON. A live page asks its server for newer data.
std::string page_data(const std::string& title, const Device* device, std::span<const PageRun> runs,
                      bool is_live = false);

// A page for browsers with that data: one file with script and style, which loads nothing else.
std::string page_of(std::string data);

// The page before and after its data. cmake/page.cmake makes them of the files in page/ and uPlot.
extern const std::string_view kPageHead, kPageTail;

}  // namespace ebb::memory::detail
