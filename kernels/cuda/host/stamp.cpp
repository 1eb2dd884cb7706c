#include <string>

#include "ebb/kernels/cuda/host/part.h"

namespace ebb::cuda {

const char* part_stamp() noexcept {
  static const std::string stamp = [] {
    std::string text = "ebb " EBB_STAMP;
    for (const std::size_t bytes :
         {sizeof(Part), sizeof(KernelContext), sizeof(MemoryQuery), sizeof(Buffer), sizeof(Launch),
          sizeof(Attributes), sizeof(memory::Profile), sizeof(detail::CudaDevice),
          sizeof(std::string)})
      text += ' ' + std::to_string(bytes);
    return text;
  }();
  return stamp.c_str();
}

}  // namespace ebb::cuda
