#include "ebb/core/device/runtime.h"

#include <algorithm>
#include <mutex>

#include "ebb/allocator/host_source.h"
#include "ebb/allocator/simulated_source.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/device/streams.h"

namespace ebb {

namespace {

// Backend of simulated devices: copies nothing, and runs only kernels that are made for it.
class SimulatedBackend final : public Backend {
 public:
  bool is_host() const noexcept override { return false; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  Status wait(Stream*, Stream*) noexcept override { return {}; }
  Status synchronise(Stream*) noexcept override { return {}; }
  Status copy_in(Stream*, void*, const void*, std::size_t) noexcept override { return {}; }
  Status copy_out(Stream*, void*, const void*, std::size_t) noexcept override { return {}; }
  Status copy(Stream*, void*, const void*, std::size_t) noexcept override { return {}; }
  Status fill(Stream*, void*, unsigned char, std::size_t) noexcept override { return {}; }
  Launched run(Stream*, std::span<const Launch> launches) noexcept override {
    for (std::size_t i = 0; i < launches.size(); ++i)
      if (const Kernel run = launches[i].run)
        if (const Status status = run(launches[i].context); !status.ok()) return {status, i};
    return {{}, launches.size()};
  }
};

Runtime::Parts host_parts() {
  auto source = std::make_unique<memory::HostSource>();
  Runtime::Parts parts;
  parts.name = "cpu";
  parts.profile.page_bytes = source->page_bytes();
  parts.source = std::move(source);
  parts.backend = detail::make_cpu_backend();
  return parts;
}

std::uint64_t next_serial() noexcept {
  static std::atomic<std::uint64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Parts set by replace_cpu(), until Device::cpu() is first called.
struct Chosen {
  Runtime::Parts parts;
  bool is_chosen = false;
  bool is_taken = false;
};
Chosen& chosen() {
  static Chosen chosen;
  return chosen;
}

}  // namespace

Runtime::Runtime(Parts parts, bool simulated)
    : name_(std::move(parts.name)),
      serial_(next_serial()),
      profile_(std::move(parts.profile)),
      simulated_(simulated),
      host_(parts.backend->is_host()),
      immediate_(host_ || simulated),
      source_(parts.source.get()),
      backend_(std::move(parts.backend)),
      streams_(std::make_shared<detail::Streams>(backend_)),
      allocator_(std::make_unique<memory::CachingAllocator>(std::move(parts.source), profile_)) {
  if (!parts.staging) return;
  memory::Profile staging;
  staging.name = "page-locked";
  staging.grows = false;
  staging.page_bytes = parts.staging->page_bytes();
  // Few, long-lived blocks. Locked memory is missing elsewhere, so each block takes only its own
  // pages.
  staging.small_request = staging.medium_request = 0;
  staging.large_multiple = staging.page_bytes;
  staging_ = std::make_unique<memory::CachingAllocator>(std::move(parts.staging), staging);
}

// Threads refer to the streams weakly: a thread that ends after this gives nothing back.
Runtime::~Runtime() {
  allocator_.reset();
  staging_.reset();
  streams_.reset();
}

Device Device::cpu() {
  // Never destroyed: tensors with static storage may outlive any other object of the process.
  static Runtime* const runtime = [] {
    chosen().is_taken = true;
    return new Runtime(chosen().is_chosen ? std::move(chosen().parts) : host_parts(), false);
  }();
  return Device(runtime, false);
}

void Runtime::replace_cpu(Parts parts) {
  if (chosen().is_taken) throw Error("the CPU is in use and cannot be replaced any more");
  chosen() = {std::move(parts), true, false};
}

Device Runtime::make(Parts parts) { return Device(new Runtime(std::move(parts), false), true); }

Device Runtime::make_simulated(const memory::Profile& profile, std::size_t capacity_bytes) {
  Parts parts{
      .name = "sim:" + profile.name,
      .profile = profile,
      .source = std::make_unique<memory::SimulatedSource>(capacity_bytes, profile.page_bytes),
      .backend = std::make_unique<SimulatedBackend>()};
  return Device(new Runtime(std::move(parts), true), true);
}

Device Runtime::make_twin(const Runtime& original) {
  Device twin = make_simulated(original.profile_, original.allocator_->room_bytes());
  twin.runtime().original_.emplace(Original{original.capacity_bytes(), original.limit_bytes()});
  return twin;
}

std::size_t Runtime::limit_bytes() const noexcept {
  const std::size_t own = allocator_->limit_bytes();
  if (own == memory::kNoLimit && original_) return original_->limit_bytes;
  return std::min(own, capacity_bytes());
}

bool Runtime::fits() const noexcept {
  return !simulated_ || static_cast<const memory::SimulatedSource*>(source_)->fits();
}

namespace {
constinit std::mutex simulations;  // read only where a simulated device has no value
}

std::shared_ptr<detail::Simulation> Runtime::simulation() const noexcept {
  if (!simulated_) return nullptr;
  const std::lock_guard lock(simulations);
  return simulation_;
}

bool Runtime::has_values() const noexcept {
  const auto simulation = this->simulation();
  return simulation ? simulation->gives_values() : !simulated_;
}

std::shared_ptr<detail::Simulation> Runtime::set_simulation(
    std::shared_ptr<detail::Simulation> simulation) noexcept {
  const std::lock_guard lock(simulations);
  return std::exchange(simulation_, std::move(simulation));
}

std::string detail::describe(const Status& status) {
  std::string text = status.problem;
  if (status.code) text += " (code " + std::to_string(status.code) + ")";
  return text;
}

namespace {
void require(const Status& status, const char* what, const std::string& device) {
  if (status.ok()) return;
  detail::refuse(what, device + ": " + detail::describe(status));
}
}  // namespace

Stream* Runtime::stream_of_thread() { return detail::stream_of_thread(streams_); }

Stream* Runtime::lend_stream() { return immediate_ ? nullptr : streams_->lend(); }

void Runtime::take_back(Stream* stream) noexcept {
  if (stream) streams_->take_back(stream);
}

void Runtime::wait_for_other(Stream* stream, memory::User other) {
  require(other == memory::Block::many_users()
              ? streams_->wait_for_all(stream)
              : backend_->wait(stream, static_cast<Stream*>(const_cast<void*>(other))),  // NOLINT
          "wait", name_);
}

void Runtime::synchronise(Stream* stream) {
  require(backend_->synchronise(stream), "synchronise", name_);
}

void Runtime::copy_in(Stream* stream, void* to, const void* from, std::size_t bytes) {
  if (bytes) require(backend_->copy_in(stream, to, from, bytes), "copy", name_);
}

void Runtime::copy_in_later(Stream* stream, void* to, const void* from, std::size_t bytes) {
  if (bytes) require(backend_->copy_in_later(stream, to, from, bytes), "copy", name_);
}

void Runtime::wait_for_copies(Stream* stream) {
  require(backend_->wait_for_copies(stream), "copy", name_);
}

void Runtime::copy_out(Stream* stream, void* to, const void* from, std::size_t bytes) {
  if (bytes) require(backend_->copy_out(stream, to, from, bytes), "copy", name_);
}

void Runtime::copy(Stream* stream, void* to, const void* from, std::size_t bytes) {
  if (bytes) require(backend_->copy(stream, to, from, bytes), "copy", name_);
}

void Runtime::fill(Stream* stream, void* to, unsigned char value, std::size_t bytes) {
  if (bytes) require(backend_->fill(stream, to, value, bytes), "fill", name_);
}

HostView::HostView(Runtime& runtime, Stream* stream, const void* values, std::size_t bytes) {
  if (runtime.is_simulated()) return;
  if (runtime.is_host()) {
    data_ = static_cast<const std::byte*>(values);
    return;
  }
  copy_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
  runtime.copy_out(stream, copy_.get(), values, bytes);
  data_ = copy_.get();
}

}  // namespace ebb
