#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ebb/core/base/shape.h"
#include "ebb/core/files/safetensors.h"

namespace ebb {

// NumPy's format for one array (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a
// magic word, a header of dtype, order and shape as a Python dict, then the values. Dtypes are f2,
// f4, f8, i4, i8, u1 and bool, little-endian.
namespace npy {

// `values`: spec.bytes() on the host. Written as safetensors::write does, in C order. Throws
// FileError, Error for bf16, which NumPy does not have, and for an open shape.
void write(const std::string& file, const Spec& spec, const void* values);

// An open file, its header read and checked against the file's size. Throws FileError saying what
// is damaged, or what NumPy has to save differently.
class File {
 public:
  explicit File(const std::string& file);
  ~File();
  File(File&&) noexcept;

  const Spec& spec() const noexcept;
  // Copies the values, spec().bytes() of them, in C order whatever the file's. Throws FileError.
  void read(void* values) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npy

// NumPy's format for several arrays by name: a ZIP archive of .npy files, by libzip.
namespace npz {

// Whether ebb was built with libzip: without it, writing and opening a file throw Error.
bool is_supported() noexcept;

using View = safetensors::View;

// As np.savez writes it, not compressed. Throws as npy::write, and Error for a name that is empty,
// too long, not UTF-8 or given twice.
void write(const std::string& file, std::span<const View> tensors);

// An open file, its directory and all headers read and checked, of np.savez or
// np.savez_compressed. Throws FileError. Used by one thread at a time.
class File {
 public:
  using Entry = safetensors::File::Entry;

  explicit File(const std::string& file);
  ~File();
  File(File&&) noexcept;

  // As the file has them; a name is without ".npy".
  const std::vector<Entry>& entries() const noexcept;
  // Null where there is none of that name.
  const Entry* find(const std::string& name) const noexcept;
  // Copies the values of entry `name`, spec.bytes() of them, in C order. Throws FileError, also for
  // values of another checksum than the archive says.
  void read(const std::string& name, void* values) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace npz
}  // namespace ebb
