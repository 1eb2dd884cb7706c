#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "ebb/core/base/shape.h"
#include "ebb/core/files/input_file.h"

namespace ebb::detail {

// Sequential reader of an .npy file, on its own or inside an archive.
class NpyBytes {
 public:
  // `count` is the number of bytes in all. `what` begins every message: "", or "'weights' ".
  NpyBytes(const InputFile& file, std::string what, std::uint64_t count)
      : file_(file), what_(std::move(what)), count_(count) {}
  virtual ~NpyBytes() = default;

  std::uint64_t count() const noexcept { return count_; }
  // Reads the next `bytes` bytes. Throws FileError, also if there are fewer.
  virtual void read(void* to, std::size_t bytes) = 0;
  // Throws FileError.
  [[noreturn]] void fail(const std::string& text) const { file_.fail(what_ + text); }

 protected:
  const InputFile& file_;

 private:
  const std::string what_;
  const std::uint64_t count_;
};

// An array in the .npy format.
struct NpyArray {
  Spec spec;
  bool is_column_major = false;    // the first axis runs fastest: Fortran order
  std::uint64_t header_bytes = 0;  // size of the header, before the values
};

// Reads the header and checks it against the number of bytes. Throws FileError.
NpyArray read_npy_header(NpyBytes& bytes);

// Reads the values after the header, array.spec.bytes() bytes, in C order. Throws FileError.
void read_npy_values(NpyBytes& bytes, const NpyArray& array, void* values);

// The bytes before the values, a multiple of 64. Throws Error with `what` as its name.
std::string make_npy_header(const Spec& spec, const char* what);

}  // namespace ebb::detail
