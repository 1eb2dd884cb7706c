// A trace for Perfetto, in either of its formats.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ebb/core/memory/writers.h"

namespace ebb::memory::detail {

// Receives what a trace shows, in no order of time. Times are nanoseconds of a steady clock. Parts
// of one tag at one address never overlap.
class Trace {
 public:
  virtual ~Trace() = default;
  // All calls that follow are about this process, and its parts have these tags.
  virtual void begin_process(const std::string& name, const std::vector<Tag>& tags) = 0;
  virtual void allocated(std::int64_t at, const ByCategory& bytes) = 0;
  virtual void reserved(std::int64_t at, std::size_t bytes) = 0;
  virtual void step(std::int64_t begin, std::int64_t end, std::size_t number) = 0;
  virtual void mark(std::int64_t at, const char* name) = 0;
  virtual void open(std::int64_t at, const Part& part) = 0;
  virtual void close(std::int64_t at, const Part& part) = 0;
  virtual void commit() = 0;
};

// Chrome's Trace Event Format, as JSON.
std::unique_ptr<Trace> make_json_trace(const std::string& path);
// Perfetto's packets. Throws Error in a build without protobuf.
std::unique_ptr<Trace> make_packet_trace(const std::string& path);

}  // namespace ebb::memory::detail
