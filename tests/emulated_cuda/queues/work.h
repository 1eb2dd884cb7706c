// A piece of work in a stream.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

// May run more than once: a graph runs its work in each replay.
class Work {
 public:
  virtual ~Work() = default;
  virtual std::string name() const = 0;
  // Called on the executing thread.
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

// Any other work, as a function. It has to translate device addresses itself, by
// AddressSpace::alias().
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

// Part of device memory that work accesses. Checked when the work runs: memory that is not mapped
// is an illegal address.
struct DevicePart {
  const void* address;
  std::size_t bytes;
  const char* what;
};
Outcome check_parts(const std::vector<DevicePart>& parts);

}  // namespace ebb::emulated
