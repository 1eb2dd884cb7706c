#pragma once
#include <span>
#include <string>

#include "ebb/core/files/safetensors.h"

namespace ebb::detail {

// Whether a checkpoint carries the calling thread's random state; that of a part does not.
enum class RandomState { saved, left_out };

// The one form of a checkpoint, written by Parameters::save and by Session::save and read by
// either: a safetensors file of parameters and slots by full name, with the format's version and
// the calling thread's random state as metadata. Throws FileError.
void write_checkpoint(const std::string& file, std::span<const safetensors::View> values,
                      RandomState random = RandomState::saved);

// Throws FileError for a file that is no checkpoint, or of a later version.
safetensors::File open_checkpoint(const std::string& file);

// Sets the calling thread's random state to the file's, where it has one.
void restore_generator(const safetensors::File& checkpoint);

}  // namespace ebb::detail
