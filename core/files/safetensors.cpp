#include "ebb/core/files/safetensors.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ebb/core/base/error.h"
#include "ebb/core/files/output_file.h"
#include "ebb/core/files/safetensors_header.h"

namespace ebb::safetensors {

void write(const std::string& file, std::span<const View> tensors, const Metadata& metadata) {
  for (const View& tensor : tensors)
    if (tensor.spec.shape.is_open())
      throw Error("[safetensors] tensor " + ebb::detail::in_quotes(tensor.name) +
                  " has the open shape " + tensor.spec.shape.to_string());
  // Wider elements first, so that each tensor's values are aligned to their own size.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].spec.dtype) > size_of(tensors[b].spec.dtype);
  });
  std::vector<detail::Extent> extents(tensors.size());
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    extents[i].begin = at;
    extents[i].end = at += tensors[i].spec.bytes();
  }

  const std::string header = detail::make_header(tensors, extents, metadata);
  ebb::detail::OutputFile out(file);
  out.write(header.data(), header.size());
  for (const std::size_t i : order) out.write(tensors[i].values, tensors[i].spec.bytes());
  out.commit();
}

struct File::Impl {
  explicit Impl(const std::string& name) : file(name), header(detail::read_header(file)) {
    for (std::size_t i = 0; i < header.entries.size(); ++i)
      indices.emplace(header.entries[i].name, i);
  }

  ebb::detail::InputFile file;
  detail::Header header;
  std::unordered_map<std::string, std::size_t> indices;  // by name
};

File::File(const std::string& file) : impl_(std::make_unique<Impl>(file)) {}
File::~File() = default;
File::File(File&&) noexcept = default;

const std::vector<File::Entry>& File::entries() const noexcept { return impl_->header.entries; }
const Metadata& File::metadata() const noexcept { return impl_->header.metadata; }

const File::Entry* File::find(const std::string& name) const noexcept {
  const auto found = impl_->indices.find(name);
  return found == impl_->indices.end() ? nullptr : &impl_->header.entries[found->second];
}

void File::read(const std::string& name, void* values) const {
  const auto found = impl_->indices.find(name);
  if (found == impl_->indices.end())
    impl_->file.fail("has no tensor " + ebb::detail::in_quotes(name));
  const detail::Extent& extent = impl_->header.extents[found->second];
  const auto bytes = static_cast<std::size_t>(extent.end - extent.begin);
  impl_->file.read(impl_->header.values_at + extent.begin, values, bytes);
  if (impl_->header.entries[found->second].spec.dtype == DType::boolean)
    ebb::detail::make_booleans(values, bytes);
}

}  // namespace ebb::safetensors
