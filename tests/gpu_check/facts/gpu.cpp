#include "ebb/tests/gpu_check/facts/gpu.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "ebb/kernels/cuda/runtime/device.h"

namespace ebb::facts {
namespace {

double seconds_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Json time(double seconds, double unit) { return kEmulated ? Json(kNotTold) : Json(seconds / unit); }

std::size_t in_pages(const memory::MemorySource& source, std::size_t bytes) {
  const std::size_t page = source.page_bytes();
  return (bytes + page - 1) / page * page;
}

}  // namespace

void require(const Status& status, const std::string& tried) {
  if (!status.ok())
    throw Error(tried + ": " + status.problem + " (" + std::to_string(status.code) + ")");
}

void require(bool holds, const std::string& tried) {
  if (!holds) throw Error(tried + ": refused");
}

Json attempt(const std::function<Json()>& tell) {
  try {
    return tell();
  } catch (const std::exception& error) {
    return {{"problem", error.what()}};
  }
}

Json microseconds(int count, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) times.push_back(seconds_of(call));
  std::sort(times.begin(), times.end());
  return time(times[times.size() / 2], 1e-6);
}

Json milliseconds(const std::function<void()>& call) { return time(seconds_of(call), 1e-3); }

Gpu::Gpu() {
  const std::string problem = cuda::open_device(0, device_);
  if (!problem.empty()) throw Error(problem);
  stream_ = backend().make_stream();
}

Json Gpu::microseconds_in_stream(int count, const std::function<void()>& call) {
  call();  // the first call looks things up and loads them
  synchronise();
  const double seconds = seconds_of([&] {
    for (int i = 0; i < count; ++i) call();
    synchronise();
  });
  return time(seconds / count, 1e-6);
}

Memory::Memory(memory::MemorySource& source, std::size_t bytes)
    : source_(source),
      bytes_(in_pages(source, std::max<std::size_t>(bytes, 1))),
      data_(static_cast<std::byte*>(source.map(bytes_))) {
  require(data_ != nullptr, "to map " + std::to_string(bytes_) + " bytes");
}

Memory::Memory(Gpu& gpu, std::size_t bytes) : Memory(gpu.source(), bytes) {
  require(gpu.backend().fill(&gpu.stream(), data_, 0, bytes_), "to fill memory");
}

Memory::~Memory() { source_.unmap(data_, bytes_); }

}  // namespace ebb::facts
