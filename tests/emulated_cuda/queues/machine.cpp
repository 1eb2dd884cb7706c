#include "ebb/tests/emulated_cuda/queues/machine.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <thread>

#include "ebb/tests/emulated_cuda/execution/grid.h"

namespace ebb::emulated {

Machine& Machine::get() {
  static auto* const machine = new Machine;  // its thread may run until the process is gone
  return *machine;
}

Machine::Machine()
    : random(options().seed), driver(options().driver), capability(options().capability) {
  ::pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                   [] { get().begin_in_child(); });
}

void Machine::begin_in_child() {
  new (&mutex_) std::mutex;
  new (&asked_) std::condition_variable;
  new (&answered_) std::condition_variable;
  requests_.clear();
  started_ = false;
  for (const QueuePtr& queue : queues_) queue->running = false;
  forget_processor();
}

void Machine::start() {
  if (started_) return;
  started_ = true;
  std::thread([this] { execute(); }).detach();
}

void Machine::complain(const std::string& text) {
  last_complaint = text;
  std::fprintf(stderr, "emulated CUDA: %s\n", text.c_str());
}

cudaError_t Machine::injected(Fault fault) {
  auto& wish = faults[static_cast<std::size_t>(fault)];
  if (!wish || wish->successes-- > 0) return cudaSuccess;
  const int code = wish->code;
  wish.reset();
  return static_cast<cudaError_t>(code);
}

cudaError_t Machine::check_stream(const CUstream_st* stream, const std::string& what) {
  if (is_stream(stream)) return lost.code;
  if (stream == nullptr) complain(what + ": the default stream");
  return cudaErrorInvalidResourceHandle;
}

QueuePtr Machine::make_queue() {
  queues_.push_back(std::make_shared<Queue>());
  return queues_.back();
}

std::size_t Machine::pending() const {
  std::size_t count = 0;
  for (const QueuePtr& queue : queues_)
    for (const Entry& entry : queue->entries) count += entry.work != nullptr;
  return count;
}

void Machine::lose(Outcome why) {
  if (!lost.ok()) return;
  lost = std::move(why);
  for (const QueuePtr& queue : queues_) queue->entries.clear();
}

// Removes waits that are over from the front.
void Machine::settle(Queue& queue) {
  while (!queue.running && !queue.entries.empty()) {
    const Entry& first = queue.entries.front();
    if (first.work || first.of->done() < first.until) return;
    queue.entries.pop_front();
  }
}

bool Machine::ready(Queue& queue) {
  settle(queue);
  return !queue.running && !queue.entries.empty() && queue.entries.front().work &&
         !queue.entries.front().is_taken;
}

// Follows the waits to the queue whose front must run first for this queue to continue.
QueuePtr Machine::first_of(QueuePtr queue) {
  while (true) {
    settle(*queue);
    if (queue->running || queue->entries.empty() || queue->entries.front().work) return queue;
    queue = QueuePtr(queue->entries.front().of);
    settle(*queue);
  }
}

QueuePtr Machine::any_ready() {
  const std::size_t begin = queues_.empty() ? 0 : random.below(queues_.size());
  for (std::size_t i = 0; i < queues_.size(); ++i)
    if (const auto& queue = queues_[(begin + i) % queues_.size()]; ready(*queue)) return queue;
  return nullptr;
}

// Runs the queue's front entry. Releases the lock meanwhile, so that other threads go on.
void Machine::run_first(Lock& lock, const QueuePtr& queue) {
  const Entry entry = std::move(queue->entries.front());
  queue->entries.pop_front();
  queue->running = true;
  Random own(random());
  Outcome outcome{injected(Fault::execute), "failed, as the test asked for"};
  if (outcome.ok()) {
    lock.unlock();
    outcome = entry.work->run(own);
    lock.lock();
  }
  queue->running = false;
  if (!outcome.ok()) {
    outcome.text = entry.work->name() + ": " + outcome.text;
    complain(outcome.text);
    lose(std::move(outcome));
  }
}

bool Machine::serve(Lock& lock, Request& request) {
  // Share of other streams' work in between, in eighths: from nothing to most of it.
  constexpr std::array<std::uint64_t, 4> kOthers = {0, 1, 4, 7};
  const std::uint64_t others = kOthers[random.below(kOthers.size())];
  while (request.queue->done() < request.done) {
    const QueuePtr first = first_of(request.queue);
    if (request.queue->done() >= request.done) break;
    if (!ready(*first)) return request.once;
    const QueuePtr other = random.below(8) < others ? any_ready() : nullptr;
    run_first(lock, other ? other : first);
    if (request.once) break;
  }
  std::erase_if(queues_, [](const QueuePtr& queue) {
    settle(*queue);
    return queue->closed && queue->entries.empty();
  });
  return true;
}

void Machine::execute() {
  Lock own(mutex_);
  while (true) {
    asked_.wait(own, [this] { return !requests_.empty(); });
    Request* const request = requests_.front();
    requests_.pop_front();
    request->over = serve(own, *request);
    if (request->over) {
      answered_.notify_all();
      continue;
    }
    requests_.push_back(request);
    own.unlock();
    std::this_thread::yield();
    own.lock();
  }
}

void Machine::run_until(Lock& lock, const QueuePtr& queue, std::uint64_t done) {
  settle(*queue);
  if (queue->done() < done) ask(lock, {queue, done});
}

bool Machine::take(Lock& lock, const QueuePtr& queue, std::uint64_t done) {
  run_until(lock, queue, done);
  if (!lost.ok()) return false;
  queue->entries.pop_front();
  queue->running = true;
  return true;
}

void Machine::ask(Lock& lock, Request request) {
  start();
  requests_.push_back(&request);
  asked_.notify_one();
  answered_.wait(lock, [&] { return request.over; });
}

bool Machine::poll(Lock& lock, const QueuePtr& queue) {
  settle(*queue);
  if (queue->done() == queue->asked) return true;
  if (random.below(2) == 0) ask(lock, {.queue = queue, .done = queue->done() + 1, .once = true});
  return false;
}

void Machine::push(Lock& lock, const QueuePtr& queue, Entry entry) {
  constexpr std::size_t kMostWaiting = 4096;
  queue->entries.push_back(std::move(entry));
  ++queue->asked;
  if (at_once) run_until(lock, queue, queue->asked);
  while (queue->entries.size() > kMostWaiting) run_until(lock, queue, queue->done() + 1);
}

cudaError_t Machine::put(Lock& lock, CUstream_st* stream, WorkPtr work) {
  // A kernel's name takes long to find: only for a complaint.
  const std::string name = stream ? "" : work->name();
  if (const cudaError_t why = check_stream(stream, name); why != cudaSuccess) return why;
  if (Capture* const capture = stream->capture.get()) {
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    GraphNodes& nodes = *capture->graph;
    nodes.push_back({std::move(work), stream->after});
    stream->after = {nodes.size() - 1};
    return cudaSuccess;
  }
  push(lock, stream->queue, {std::move(work)});
  return lost.code;
}

}  // namespace ebb::emulated
