// Tensors in files: NumPy's, and safetensors.
#pragma once
#include <map>
#include <string>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

using TensorsByName = std::map<std::string, Tensor>;

// One array as np.save writes it: f2, f4, f8, i4, i8, u1 or bool, little-endian, in C or Fortran
// order. Throws FileError for a file that is not there, damaged, or of what ebb does not have.
Tensor load_npy(const std::string& file, const Device& device = Device::cpu(),
                CallSite site = CallSite::here());
// For np.load, in C order. A file that is there is replaced when the new one is complete. Throws
// FileError, Error for a tensor without values and for bf16, which NumPy does not have.
void save_npy(const std::string& file, const Tensor& tensor, CallSite site = CallSite::here());

// The arrays of an archive as np.savez or np.savez_compressed writes it. Throws as load_npy, and
// Error where ebb was built without libzip, as save_npz does.
TensorsByName load_npz(const std::string& file, const Device& device = Device::cpu(),
                       CallSite site = CallSite::here());
// For np.load, not compressed. Throws as save_npy.
void save_npz(const std::string& file, const TensorsByName& tensors,
              CallSite site = CallSite::here());

// The tensors of a safetensors file, of every dtype. Throws FileError.
TensorsByName load_safetensors(const std::string& file, const Device& device = Device::cpu(),
                               CallSite site = CallSite::here());
// As safetensors::write. Throws FileError, Error for a tensor without values.
void save_safetensors(const std::string& file, const TensorsByName& tensors,
                      CallSite site = CallSite::here());

}  // namespace ebb
