#include "ebb/kernels/cuda/loader/part.h"

#include "ebb/core/kernels/device_kernel.h"

namespace ebb::cuda {

const char* part_stamp() noexcept {
  static const std::string stamp = [] {
    std::string text = "ebb " EBB_VERSION;
    for (const std::size_t bytes :
         {sizeof(Part), sizeof(KernelContext), sizeof(MemoryQuery), sizeof(Buffer), sizeof(Launch),
          sizeof(Attributes), sizeof(memory::Profile), sizeof(detail::CudaDevice),
          sizeof(std::string)})
      text += ' ' + std::to_string(bytes);
    return text;
  }();
  return stamp.c_str();
}

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string describe(const Toolkit& toolkit) {
  if (toolkit.compiled_version == 0) return "no CUDA part";
  std::string line = "CUDA " + version(toolkit.compiled_version);
  if (toolkit.lacks_cublas_lt) line += " without cuBLASLt (slow products)";
  if (toolkit.driver_version == 0) return line + ", no driver here";
  return line + ", driver for " + version(toolkit.driver_version) + ", " +
         std::to_string(toolkit.device_count) +
         (toolkit.device_count == 1 ? " device" : " devices");
}

}  // namespace ebb::cuda
