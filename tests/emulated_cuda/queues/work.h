// What a stream is asked to do.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

// May be done more than once: a graph does it in each replay.
class Work {
 public:
  virtual ~Work() = default;
  virtual std::string name() const = 0;
  // On the executing thread.
  virtual Outcome run(Random& random) const = 0;
};
using WorkPtr = std::shared_ptr<const Work>;

class KernelWork final : public Work {
 public:
  KernelWork(const KernelCall& call, dim3 grid, dim3 block);
  std::string name() const override;
  Outcome run(Random& random) const override;

 private:
  struct alignas(16) Sixteen {
    unsigned char bytes[16];
  };
  KernelCall call_;
  dim3 grid_, block_;
  std::vector<Sixteen> arguments_;
};

// Anything else, as a function that gets device addresses where kernels would find them.
class FunctionWork final : public Work {
 public:
  FunctionWork(std::string name, std::function<Outcome()> function)
      : name_(std::move(name)), function_(std::move(function)) {}
  std::string name() const override { return name_; }
  Outcome run(Random&) const override;

 private:
  const std::string name_;
  const std::function<Outcome()> function_;
};

// A part of device memory that work is given, checked when it runs: not mapped is an illegal
// address.
struct DevicePart {
  const void* address;
  std::size_t bytes;
  const char* what;
};
Outcome check_parts(const std::vector<DevicePart>& parts);

}  // namespace ebb::emulated
