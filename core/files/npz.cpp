#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "ebb/core/base/error.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/files/input_file.h"
#include "ebb/core/files/npy.h"
#include "ebb/core/files/npy_array.h"
#include "ebb/core/files/output_file.h"

namespace ebb::npz {

namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kLongestName = 0xffff;
constexpr zip_uint64_t kMostInflated = 1032;  // most bytes inflated from one: deflate stores 258
                                              // bytes in two bits
using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;  // closed without writing

struct ZipError : zip_error_t, NoCopy {
  explicit ZipError(int code = ZIP_ER_OK) { zip_error_init_with_code(this, code); }
  ~ZipError() { zip_error_fini(this); }
};

// Lets libzip write to an OutputFile.
class Target {
 public:
  explicit Target(const std::string& name) : name_(name), file_(name) {}

  void write(std::span<const View> tensors, std::span<const std::string> headers) {
    if (tensors.empty()) {  // libzip makes no file without entries
      const std::string end = "PK\5\6" + std::string(18, '\0');
      file_.write(end.data(), end.size());
      return file_.commit();
    }
    zip_source_t* const source = zip_source_function_create(call, this, &error_);
    Archive archive(source ? zip_open_from_source(source, ZIP_CREATE, &error_) : nullptr,
                    zip_discard);
    if (!archive) {
      zip_source_free(source);
      fail(&error_);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) add(archive.get(), tensors[i], headers[i]);
    if (zip_close(archive.get()) != 0) fail(zip_get_error(archive.get()));
    static_cast<void>(archive.release());
  }

 private:
  [[noreturn]] void fail(zip_error_t* error) const {
    if (problem_) std::rethrow_exception(problem_);
    detail::refuse_file(name_ + ": cannot be written: " + zip_error_strerror(error));
  }

  void add(zip_t* archive, const View& tensor, const std::string& header) const {
    const auto bytes = [](const void* from) {
      return static_cast<zip_uint8_t*>(const_cast<void*>(from));  // libzip only reads it
    };
    const zip_buffer_fragment_t parts[] = {{bytes(header.data()), header.size()},
                                           {bytes(tensor.values), tensor.spec.bytes()}};
    zip_source_t* const source = zip_source_buffer_fragment(archive, parts, 2, 0);
    const std::string name = tensor.name + std::string(kEnding);
    const zip_int64_t index =
        source ? zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) zip_source_free(source);
    if (source && index < 0 && zip_error_code_zip(zip_get_error(archive)) == ZIP_ER_INVAL)
      detail::refuse("npz", "the name " + detail::in_quotes(tensor.name) + " is not UTF-8");
    const auto at = static_cast<zip_uint64_t>(index);
    constexpr zip_uint16_t kMidnight = 0, kDay = 33;  // 1980-01-01: equal tensors give equal files
    if (index < 0 || zip_set_file_compression(archive, at, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(archive, at, kMidnight, kDay, 0) != 0)
      fail(zip_get_error(archive));
  }

  static zip_int64_t call(void* self, void* data, zip_uint64_t bytes, zip_source_cmd_t command) {
    auto& target = *static_cast<Target*>(self);
    try {
      return target.execute(data, bytes, command);
    } catch (...) {  // passes through libzip, to fail()
      target.problem_ = std::current_exception();
      zip_error_set(&target.error_, ZIP_ER_WRITE, EIO);
      return -1;
    }
  }
  zip_int64_t execute(void* data, zip_uint64_t bytes, zip_source_cmd_t command) {
    switch (command) {
      case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_WRITABLE;
      case ZIP_SOURCE_STAT:  // there is no file yet
        zip_error_set(&error_, ZIP_ER_READ, ENOENT);
        return -1;
      case ZIP_SOURCE_WRITE:
        file_.write(data, static_cast<std::size_t>(bytes));
        at_ += bytes;
        end_ = std::max(end_, at_);
        return static_cast<zip_int64_t>(bytes);
      case ZIP_SOURCE_SEEK_WRITE: {
        const zip_int64_t at = zip_source_seek_compute_offset(at_, end_, data, bytes, &error_);
        if (at < 0) return -1;
        at_ = static_cast<zip_uint64_t>(at);
        file_.seek(at_);
        return 0;
      }
      case ZIP_SOURCE_TELL_WRITE:
        return static_cast<zip_int64_t>(at_);
      case ZIP_SOURCE_COMMIT_WRITE:
        file_.commit();
        return 0;
      case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&error_, data, bytes);
      case ZIP_SOURCE_BEGIN_WRITE:
      case ZIP_SOURCE_ROLLBACK_WRITE:
      case ZIP_SOURCE_FREE:
        return 0;
      default:
        zip_error_set(&error_, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
  }

  const std::string name_;
  detail::OutputFile file_;
  zip_uint64_t at_ = 0, end_ = 0;
  ZipError error_;
  std::exception_ptr problem_;
};

// Bytes of an archive's entry, inflated if they are compressed.
class EntryBytes final : public detail::NpyBytes {
 public:
  EntryBytes(const detail::InputFile& file, const std::string& name, zip_t* archive,
             zip_uint64_t index, zip_uint64_t count)
      : NpyBytes(file, name + " ", count), entry_(zip_fopen_index(archive, index, 0), zip_fclose) {
    if (!entry_) fail(std::string("cannot be read: ") + zip_strerror(archive));
  }
  void read(void* to, std::size_t bytes) override {
    const zip_int64_t got = zip_fread(entry_.get(), to, bytes);
    if (got < 0) fail_damaged();
    if (static_cast<std::size_t>(got) != bytes) fail("is damaged: it is cut");
  }
  void skip(std::uint64_t bytes) {
    std::string skipped(static_cast<std::size_t>(bytes), '\0');
    read(skipped.data(), skipped.size());
  }
  // Reads past the end, where libzip compares checksums.
  void finish() {
    char none = 0;
    if (zip_fread(entry_.get(), &none, 1) != 0) fail_damaged();
  }

 private:
  [[noreturn]] void fail_damaged() const {
    fail(std::string("is damaged: ") + zip_file_strerror(entry_.get()));
  }

  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> entry_;
};

// The headers of an archive's arrays. Throws Error for a name or dtype that it cannot have.
std::vector<std::string> make_headers(std::span<const View> tensors) {
  std::unordered_set<std::string> names;
  std::vector<std::string> headers;
  for (const View& tensor : tensors) {
    const std::string name = detail::in_quotes(tensor.name);
    const auto require = [&](bool holds, const char* problem) {
      if (!holds) detail::refuse("npz", "the name " + name + " " + problem);
    };
    require(!tensor.name.empty(), "is empty");
    require(tensor.name.size() + kEnding.size() <= kLongestName, "is too long");
    require(tensor.name.find('\0') == std::string::npos, "has a byte of zero");
    require(names.insert(tensor.name).second, "is given twice");
    headers.push_back(detail::make_npy_header(tensor.spec, ("npz " + name).c_str()));
  }
  return headers;
}

}  // namespace

bool is_supported() noexcept { return true; }

void write(const std::string& file, std::span<const View> tensors) {
  const std::vector<std::string> headers = make_headers(tensors);
  Target(file).write(tensors, headers);
}

void check_write(const std::string& file, std::span<const View> tensors) {
  make_headers(tensors);
  detail::OutputFile::check(file);
}

struct File::Impl {
  struct Part {
    std::string name;  // in quotes
    zip_uint64_t index, bytes;
    detail::NpyArray array = {};
  };

  explicit Impl(const std::string& name) : file(name), archive(nullptr, zip_discard) {
    int code = 0;
    const int descriptor = file.duplicate();  // the archive's, once it is open
    archive.reset(zip_fdopen(descriptor, ZIP_RDONLY | ZIP_CHECKCONS, &code));
    if (!archive) {
      ::close(descriptor);
      ZipError error(code);
      file.fail(std::string("is no ZIP archive, or damaged: ") + zip_error_strerror(&error));
    }
    const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
    for (zip_int64_t i = 0; i < count; ++i) add(static_cast<zip_uint64_t>(i));
  }

  EntryBytes bytes_of(const Part& part) const {
    return {file, part.name, archive.get(), part.index, part.bytes};
  }

  void add(zip_uint64_t index) {
    zip_stat_t found;
    if (zip_stat_index(archive.get(), index, 0, &found) != 0 || !found.name)
      file.fail(std::string("is damaged: ") + zip_strerror(archive.get()));
    const std::string name = found.name;
    Part part{detail::in_quotes(name), index, found.size};
    const bool is_stored = found.comp_method == ZIP_CM_STORE;
    if (!name.ends_with(kEnding)) file.fail("has " + part.name + ", which is no .npy file");
    if (found.encryption_method != ZIP_EM_NONE) file.fail(part.name + " is encrypted");
    if (!is_stored && found.comp_method != ZIP_CM_DEFLATE)
      file.fail(part.name + " is compressed by ZIP's method " + std::to_string(found.comp_method) +
                "; ebb reads what np.savez_compressed writes");
    // Bounds the memory that is taken by the file's size.
    if (found.comp_size > file.size() ||
        (is_stored ? found.size != found.comp_size : found.size / kMostInflated > found.comp_size))
      file.fail(part.name + " is damaged: " + std::to_string(found.size) +
                " bytes cannot come of " + std::to_string(found.comp_size));
    EntryBytes bytes = bytes_of(part);
    part.array = detail::read_npy_header(bytes);
    const std::string entry = name.substr(0, name.size() - kEnding.size());
    indices.emplace(entry, parts.size());  // libzip refuses archives with a name twice
    entries.push_back({entry, part.array.spec});
    parts.push_back(std::move(part));
  }

  detail::InputFile file;
  Archive archive;
  std::vector<Part> parts;
  std::vector<Entry> entries;
  std::unordered_map<std::string, std::size_t> indices;  // by name
};

File::File(const std::string& file) : impl_(std::make_unique<Impl>(file)) {}
File::~File() = default;
File::File(File&&) noexcept = default;

const std::vector<File::Entry>& File::entries() const noexcept { return impl_->entries; }

void File::read(const std::string& name, void* values) const {
  const auto found = impl_->indices.find(name);
  if (found == impl_->indices.end()) impl_->file.fail("has no array " + detail::in_quotes(name));
  const auto& part = impl_->parts[found->second];
  EntryBytes bytes = impl_->bytes_of(part);
  bytes.skip(part.array.header_bytes);
  detail::read_npy_values(bytes, part.array, values);
  bytes.finish();
}

}  // namespace ebb::npz
