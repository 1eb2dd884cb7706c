// Streams, events, captures and graphs, as the machine keeps them.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ebb/tests/emulated_cuda/memory/address_space.h"
#include "ebb/tests/emulated_cuda/queues/work.h"

namespace ebb::emulated {

// A piece of work, or a wait until another queue has done `until` entries in all.
struct Entry {
  WorkPtr work = {};
  std::shared_ptr<struct Queue> of = {};
  std::uint64_t until = 0;
  bool is_taken = false;  // another thread takes the work and does it (Machine::take)
};

struct Queue {
  std::deque<Entry> entries;
  std::uint64_t asked = 0;
  bool running = false;  // an entry was taken out and runs
  bool closed = false;   // its stream is gone; its remaining work is still done
  std::uint64_t done() const noexcept { return asked - entries.size() - (running ? 1 : 0); }
};
using QueuePtr = std::shared_ptr<Queue>;

struct Node {
  WorkPtr work;
  std::vector<std::size_t> after;
};
using GraphNodes = std::vector<Node>;

struct Capture {
  CUstream_st* origin = nullptr;
  std::vector<CUstream_st*> streams = {};
  bool invalid = false;
  std::shared_ptr<GraphNodes> graph = std::make_shared<GraphNodes>();
};
using CapturePtr = std::shared_ptr<Capture>;

}  // namespace ebb::emulated

struct CUstream_st {
  ebb::emulated::QueuePtr queue = {};
  ebb::emulated::CapturePtr capture = {};
  std::vector<std::size_t> after = {};  // the nodes that the next one depends on
};

struct CUevent_st {
  ebb::emulated::QueuePtr queue = {};  // in which it was recorded; null: never
  std::uint64_t until = 0;             // entries of the queue before it
  // Set if the event was recorded in a stream that was being captured.
  ebb::emulated::CapturePtr capture = {};
  std::vector<std::size_t> after = {};
};

struct CUgraph_st {
  std::shared_ptr<const ebb::emulated::GraphNodes> graph = {};
};
struct CUgraphExec_st {
  std::shared_ptr<const ebb::emulated::GraphNodes> graph = {};
  ebb::emulated::OwnMemory memory = {};
};
