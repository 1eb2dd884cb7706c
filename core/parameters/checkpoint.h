#pragma once
#include <span>
#include <string>
#include <string_view>

#include "ebb/core/device/device.h"
#include "ebb/core/files/resumable.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/parameters/checkpoint_of_ranks.h"

namespace ebb::detail {

// Whether a checkpoint carries the calling thread's random state; a checkpoint of a scope does not.
enum class RandomState { saved, left_out };

// Writes a checkpoint, in the one format that Parameters::save, Session::save and both readers
// share: a safetensors file of parameters and slots by full name, with format version, the calling
// thread's random state and a loader's position as metadata. In a prediction on `device`, a twin,
// nothing is written and values are not read: the prediction remembers the header. Throws
// FileError. All ranks of a `world` write one checkpoint, see write_with_ranks().
void write_checkpoint(const std::string& file, std::span<const SavedValue> values,
                      const Device& device, RandomState random = RandomState::saved,
                      const Resumable* loader = nullptr,
                      const std::optional<distributed::World>& world = {});
// Copies the value `name`, or of one that is in shares this rank's.
void read_checkpoint(const safetensors::File& checkpoint, const std::string& name, void* to,
                     const distributed::World* shared_by);

// Opens a file, or what the prediction on `device` remembers of it, which has no values to read.
// Throws FileError for a file that is not safetensors, and for a checkpoint of another version.
safetensors::File open_checkpoint(const std::string& file, const Device& device);

// "it has a, b": for a message about a name that the file lacks. Slots are left out.
std::string names_in(const safetensors::File& checkpoint, std::string_view wanted);

// Restores the calling thread's random state from the file, if it has one.
void restore_generator(const safetensors::File& checkpoint);

// Reads the loader position from the file. Throws FileError if there is none, or this loader cannot
// take it up.
Resumable::Position loader_position(const safetensors::File& checkpoint, const std::string& file,
                                    const Resumable& loader);

}  // namespace ebb::detail
