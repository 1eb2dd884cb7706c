#pragma once
#include <cstdint>
#include <string>

#include "ebb/core/base/shape.h"
#include "ebb/core/files/input_file.h"

namespace ebb::detail {

// An array in the .npy format, somewhere in a file.
struct NpyArray {
  Spec spec;
  bool is_column_major = false;  // the first axis runs fastest: Fortran order
  std::uint64_t values_at = 0;   // where in the file its values begin
};

// Reads and checks the header of the array that is all of [begin, end). `what` begins a message
// about it: "", or "'weights' ". Throws FileError.
NpyArray read_npy_header(const InputFile& file, std::uint64_t begin, std::uint64_t end,
                         const std::string& what);

// array.spec.bytes() of values, in C order. Throws FileError.
void read_npy_values(const InputFile& file, const NpyArray& array, void* values);

// What stands before the values, a multiple of 64 bytes long. Throws Error in the name of `what`.
std::string make_npy_header(const Spec& spec, const char* what);

}  // namespace ebb::detail
