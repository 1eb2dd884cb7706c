#include <unordered_map>
#include <unordered_set>

#include "ebb/core/base/error.h"
#include "ebb/core/files/npy.h"
#include "ebb/core/files/npy_array.h"
#include "ebb/core/files/zip.h"

namespace ebb::npz {

namespace {
constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kLongestName = 0xffff;
}  // namespace

void write(const std::string& file, std::span<const View> tensors) {
  std::unordered_set<std::string> names;
  std::vector<std::string> headers;
  for (const View& tensor : tensors) {
    const std::string name = detail::in_quotes(tensor.name);
    if (tensor.name.empty() || tensor.name.size() + kEnding.size() > kLongestName)
      detail::refuse("npz",
                     "the name " + name + " is " + (tensor.name.empty() ? "empty" : "too long"));
    if (!names.insert(tensor.name).second)
      detail::refuse("npz", "the name " + name + " is given twice");
    headers.push_back(detail::make_npy_header(tensor.spec, ("npz " + name).c_str()));
  }
  detail::ZipWriter zip(file);
  for (std::size_t i = 0; i < tensors.size(); ++i)
    zip.add(tensors[i].name + std::string(kEnding),
            {{headers[i].data(), headers[i].size()}, {tensors[i].values, tensors[i].spec.bytes()}});
  zip.commit();
}

struct File::Impl {
  explicit Impl(const std::string& name) : file(name), parts(detail::read_zip_directory(file)) {
    for (const detail::ZipEntry& part : parts) {
      const std::string quoted = detail::in_quotes(part.name);
      if (!part.name.ends_with(kEnding)) file.fail("has " + quoted + ", which is no .npy file");
      const std::string entry = part.name.substr(0, part.name.size() - kEnding.size());
      if (!indices.emplace(entry, arrays.size()).second) file.fail("has " + quoted + " twice");
      arrays.push_back(detail::read_npy_header(file, part.begin, part.end, quoted + " "));
      entries.push_back({entry, arrays.back().spec});
    }
  }

  detail::InputFile file;
  std::vector<detail::ZipEntry> parts;
  std::vector<detail::NpyArray> arrays;
  std::vector<Entry> entries;
  std::unordered_map<std::string, std::size_t> indices;  // by name
};

File::File(const std::string& file) : impl_(std::make_unique<Impl>(file)) {}
File::~File() = default;
File::File(File&&) noexcept = default;

const std::vector<File::Entry>& File::entries() const noexcept { return impl_->entries; }

const File::Entry* File::find(const std::string& name) const noexcept {
  const auto found = impl_->indices.find(name);
  return found == impl_->indices.end() ? nullptr : &impl_->entries[found->second];
}

void File::read(const std::string& name, void* values) const {
  const auto found = impl_->indices.find(name);
  if (found == impl_->indices.end()) impl_->file.fail("has no array " + detail::in_quotes(name));
  detail::check_zip_entry(impl_->file, impl_->parts[found->second]);
  detail::read_npy_values(impl_->file, impl_->arrays[found->second], values);
}

}  // namespace ebb::npz
