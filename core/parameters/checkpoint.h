#pragma once
#include <span>
#include <string>
#include <string_view>

#include "ebb/core/files/resumable.h"
#include "ebb/core/files/safetensors.h"

namespace ebb::detail {

// Whether a checkpoint carries the calling thread's random state; that of a part does not.
enum class RandomState { saved, left_out };

// The one form of a checkpoint, written by Parameters::save and by Session::save and read by
// either: a safetensors file of parameters and slots by full name, with the format's version, the
// calling thread's random state and a loader's position as metadata. Throws FileError.
void write_checkpoint(const std::string& file, std::span<const safetensors::View> values,
                      RandomState random = RandomState::saved, const Resumable* loader = nullptr);

// Throws FileError for a file that is no checkpoint, or of a later version.
safetensors::File open_checkpoint(const std::string& file);

// "it has a, b": for a message about a name that the file lacks; slots are left out.
std::string names_in(const safetensors::File& checkpoint, std::string_view wanted);

// Sets the calling thread's random state to the file's, where it has one.
void restore_generator(const safetensors::File& checkpoint);

// The position in the file, from which this loader can go on. Throws FileError where there is none,
// or it is another loader's.
Resumable::Position loader_position(const safetensors::File& checkpoint, const std::string& file,
                                    const Resumable& loader);

}  // namespace ebb::detail
