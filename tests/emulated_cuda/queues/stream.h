// Streams, events, captures and graphs, as the machine keeps them.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ebb/tests/emulated_cuda/queues/work.h"

namespace ebb::emulated {

// Becomes done when a queue reaches it.
struct Marker {
  bool done = false;
};
using MarkerPtr = std::shared_ptr<Marker>;

struct Entry {
  WorkPtr work = {};
  MarkerPtr signals = {};  // once it is at the front
  MarkerPtr waits_for = {};
  std::shared_ptr<struct Queue> of = {};  // queue that signals waits_for
};

struct Queue {
  int device = 0;
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
struct GraphNodes {
  std::vector<Node> nodes;
};

struct Capture {
  CUstream_st* origin = nullptr;
  std::vector<CUstream_st*> streams = {};
  bool invalid = false;
  std::shared_ptr<GraphNodes> graph = std::make_shared<GraphNodes>();
};
using CapturePtr = std::shared_ptr<Capture>;

}  // namespace ebb::emulated

struct CUstream_st {
  int device = 0;
  ebb::emulated::QueuePtr queue = {};
  ebb::emulated::CapturePtr capture = {};
  std::vector<std::size_t> after = {};  // the nodes that the next one depends on
};

struct CUevent_st {
  int device = 0;
  ebb::emulated::MarkerPtr marker = {};  // null: never recorded
  ebb::emulated::QueuePtr queue = {};    // in which it was recorded
  // Set if the event was recorded in a stream that was being captured.
  ebb::emulated::CapturePtr capture = {};
  std::vector<std::size_t> after = {};
};

struct CUgraph_st {
  int device = 0;
  std::shared_ptr<const ebb::emulated::GraphNodes> graph = {};
};
struct CUgraphExec_st {
  int device = 0;
  std::shared_ptr<const ebb::emulated::GraphNodes> graph = {};
};
