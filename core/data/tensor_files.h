// Tensors in files of NumPy and safetensors.
#pragma once
#include <map>
#include <string>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

using TensorsByName = std::map<std::string, Tensor>;

// Loads an array written by np.save: f2, f4, f8, i4, i8, u1 or bool, little-endian, in C or Fortran
// order. Throws FileError for a file that is missing, damaged, or of a dtype that ebb lacks.
Tensor load_npy(const std::string& file, const Device& device = Device::cpu(),
                CallSite site = CallSite::here());
// Saves for np.load, in C order. An existing file is replaced only when the new one is complete.
// Throws FileError, Error for a tensor without values and for bf16, which NumPy does not have.
void save_npy(const std::string& file, const Tensor& tensor, CallSite site = CallSite::here());

// Loads the arrays of an archive by np.savez or np.savez_compressed. Throws as load_npy; Error if
// ebb was built without libzip, as save_npz does.
TensorsByName load_npz(const std::string& file, const Device& device = Device::cpu(),
                       CallSite site = CallSite::here());
// Saves for np.load, not compressed. Throws as save_npy.
void save_npz(const std::string& file, const TensorsByName& tensors,
              CallSite site = CallSite::here());

// Loads the tensors of a safetensors file, of every dtype. Throws FileError.
TensorsByName load_safetensors(const std::string& file, const Device& device = Device::cpu(),
                               CallSite site = CallSite::here());
// Saves as safetensors::write does. Throws FileError, Error for a tensor without values.
void save_safetensors(const std::string& file, const TensorsByName& tensors,
                      CallSite site = CallSite::here());

}  // namespace ebb
