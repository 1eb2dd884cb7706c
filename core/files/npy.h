#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ebb/core/base/shape.h"
#include "ebb/core/files/input_file.h"
#include "ebb/core/files/npy_array.h"
#include "ebb/core/files/safetensors.h"

namespace ebb {

// NumPy's format for one array (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a
// magic word, a header of dtype, order and shape as a Python dict, then the values. Dtypes are f2,
// f4, f8, i4, i8, u1 and bool, little-endian.
namespace npy {

// Writes an array from `values`, spec.bytes() bytes on the host, in C order; the file appears as
// with safetensors::write. Throws FileError; Error for an open shape, and for bf16, which NumPy
// does not have.
void write(const std::string& file, const Spec& spec, const void* values);
// Throws as write() would before its first byte, and writes nothing.
void check_write(const std::string& file, const Spec& spec);

// An open file whose header is read and checked against the file's size. Throws FileError that
// names the damage, or the form in which NumPy must save the array.
class File {
 public:
  explicit File(const std::string& file);

  const Spec& spec() const noexcept { return array_.spec; }
  // Copies the values, spec().bytes() bytes, in C order whatever the file's order. Throws
  // FileError.
  void read(void* values) const;

 private:
  detail::InputFile file_;
  detail::NpyArray array_;
};

}  // namespace npy

// NumPy's format for several named arrays: a ZIP archive of .npy files, through libzip.
namespace npz {

// Whether ebb was built with libzip. Without it, writing and opening a file throw Error.
bool is_supported() noexcept;

using View = safetensors::View;

// Writes an uncompressed archive like np.savez. Throws as npy::write does, and Error for a name
// that is empty, too long, not UTF-8 or given twice.
void write(const std::string& file, std::span<const View> tensors);
// Throws as write() would before its first byte, and writes nothing.
void check_write(const std::string& file, std::span<const View> tensors);

// An open file of np.savez or np.savez_compressed, its directory and all headers read and checked.
// Throws FileError. Used by one thread at a time.
class File {
 public:
  using Entry = safetensors::File::Entry;

  explicit File(const std::string& file);
  ~File();
  File(File&&) noexcept;

  // In the order of the file; names come without ".npy".
  const std::vector<Entry>& entries() const noexcept;
  // Copies the values of entry `name`, spec.bytes() bytes, in C order. Throws FileError, also if
  // the archive's checksum does not match.
  void read(const std::string& name, void* values) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npz
}  // namespace ebb
