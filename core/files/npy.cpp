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

namespace {
class FileBytes final : public detail::NpyBytes {
 public:
  FileBytes(const detail::InputFile& file, std::uint64_t at)
      : NpyBytes(file, "", file.size()), at_(at) {}
  void read(void* to, std::size_t bytes) override {
    file_.read(at_, to, bytes);
    at_ += bytes;
  }

 private:
  std::uint64_t at_;
};

detail::NpyArray read_header(const detail::InputFile& file) {
  FileBytes bytes(file, 0);
  return detail::read_npy_header(bytes);
}
}  // namespace

struct File::Impl {
  explicit Impl(const std::string& name) : file(name), array(read_header(file)) {}
  detail::InputFile file;
  detail::NpyArray array;
};

File::File(const std::string& file) : impl_(std::make_unique<Impl>(file)) {}
File::~File() = default;
File::File(File&&) noexcept = default;

const Spec& File::spec() const noexcept { return impl_->array.spec; }
void File::read(void* values) const {
  FileBytes bytes(impl_->file, impl_->array.header_bytes);
  detail::read_npy_values(bytes, impl_->array, values);
}

}  // namespace ebb::npy
