#include "ebb/kernels/cuda/host/part.h"

namespace ebb::cuda {

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string describe(const Toolkit& toolkit) {
  if (toolkit.compiled_version == 0) return "no CUDA part";
  std::string line = "CUDA " + version(toolkit.compiled_version);
  if (toolkit.driver_version == 0) return line + ", no driver here";
  return line + ", driver for " + version(toolkit.driver_version) + ", " +
         std::to_string(toolkit.device_count) +
         (toolkit.device_count == 1 ? " device" : " devices");
}

}  // namespace ebb::cuda
