#include "ebb/core/files/npy.h"

#include "ebb/core/files/npy_array.h"
#include "ebb/core/files/output_file.h"

namespace ebb::npy {

void write(const std::string& file, const Spec& spec, const void* values) {
  const std::string header = detail::make_npy_header(spec, "npy");
  detail::OutputFile out(file);
  out.write(header.data(), header.size());
  out.write(values, spec.bytes());
  out.commit();
}

struct File::Impl {
  explicit Impl(const std::string& name)
      : file(name), array(detail::read_npy_header(file, 0, file.size(), "")) {}
  detail::InputFile file;
  detail::NpyArray array;
};

File::File(const std::string& file) : impl_(std::make_unique<Impl>(file)) {}
File::~File() = default;
File::File(File&&) noexcept = default;

const Spec& File::spec() const noexcept { return impl_->array.spec; }
void File::read(void* values) const { detail::read_npy_values(impl_->file, impl_->array, values); }

}  // namespace ebb::npy
