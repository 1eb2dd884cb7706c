#include "ebb/core/files/npy_array.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/files/npy.h"
#include "ebb/core/files/output_file.h"

namespace ebb::detail {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{1} << 20;
constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

constexpr struct {
  std::string_view name;
  DType dtype;
} kDTypes[] = {{"<f4", DType::f32},    {"<f8", DType::f64}, {"<f2", DType::f16},
               {"<i4", DType::i32},    {"<i8", DType::i64}, {"|u1", DType::u8},
               {"|b1", DType::boolean}};

// Parser of the header: a Python dict of three keys, with a string, a bool and a tuple as values.
class HeaderParser {
 public:
  HeaderParser(const NpyBytes& from, std::string_view text) : from_(from), text_(text) {}

  void parse(NpyArray& array) {
    require('{');
    while (!take('}')) {
      const std::string key = string("a key");
      require(':');
      if (key == "descr" && !has_dtype_) {
        array.spec.dtype = dtype();
        has_dtype_ = true;
      } else if (key == "fortran_order" && !has_order_) {
        array.is_column_major = boolean();
        has_order_ = true;
      } else if (key == "shape" && !has_shape_) {
        array.spec.shape = shape();
        has_shape_ = true;
      } else {
        fail("has the key " + in_quotes(key) + ", which is unknown or there twice");
      }
      if (!take(',')) {
        require('}');
        break;
      }
    }
    skip_blanks();
    if (!text_.empty()) fail("has " + in_quotes(text_) + " behind its dict");
    if (!has_dtype_) fail("has no 'descr'");
    if (!has_order_) fail("has no 'fortran_order'");
    if (!has_shape_) fail("has no 'shape'");
  }

 private:
  [[noreturn]] void fail(const std::string& text) const {
    from_.fail("is no NumPy array, or damaged: its header " + text);
  }
  void skip_blanks() noexcept {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t'))
      text_.remove_prefix(1);
  }
  bool take(char c) noexcept {
    skip_blanks();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void require(char c) {
    if (!take(c)) fail("has " + here() + " where a '" + c + "' should be");
  }
  std::string here() const { return text_.empty() ? "its end" : in_quotes(text_.substr(0, 20)); }

  std::string string(const char* where) {
    skip_blanks();
    const char quote = text_.empty() ? '\0' : text_[0];
    const std::size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : text_.npos;
    if (end == text_.npos) fail("has " + here() + " where " + where + " should be");
    const std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  bool boolean() {
    skip_blanks();
    for (const std::string_view word : {"False", "True"})
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return word == "True";
      }
    fail("has " + here() + " as its fortran_order");
  }

  DType dtype() {
    skip_blanks();
    if (!text_.empty() && text_[0] == '[')
      from_.fail("is an array of records, which ebb does not read; save each field by itself");
    const std::string name = string("a dtype");
    for (const auto& known : kDTypes)
      // Single bytes have no byte order.
      if (name == known.name ||
          (size_of(known.dtype) == 1 && name.size() == 3 && name.substr(1) == known.name.substr(1)))
        return known.dtype;
    const bool is_big_endian = name.size() > 1 && name[0] == '>';
    from_.fail("has the dtype " + in_quotes(name) + ", which ebb does not " +
               (is_big_endian ? "read: it is big-endian" : "have") +
               "; save it as little-endian f2, f4, f8, i4 or i8, as u1 or bool: a.astype('<f4')");
  }

  Shape shape() {
    require('(');
    Shape shape;
    while (!take(')')) {
      skip_blanks();
      std::int64_t size = 0;
      const auto [stop, error] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("has " + here() + " in its shape");
      text_.remove_prefix(static_cast<std::size_t>(stop - text_.data()));
      if (!text_.empty() && text_[0] == 'L') text_.remove_prefix(1);  // written by Python 2
      if (shape.rank() == kMaxRank)
        from_.fail("has more than " + std::to_string(kMaxRank) + " dimensions");
      shape.push_back(size);
      if (!take(',')) {
        require(')');
        break;
      }
    }
    if (!shape.is_countable()) from_.fail("has " + too_large(shape).substr(4));
    return shape;
  }

  const NpyBytes& from_;
  std::string_view text_;  // the rest of the header
  bool has_dtype_ = false, has_order_ = false, has_shape_ = false;
};

// Copies elements from Fortran order to C order.
class Scatter {
 public:
  Scatter(const Spec& spec, void* to)
      : shape_(spec.shape), bytes_(size_of(spec.dtype)), to_(static_cast<std::byte*>(to)) {
    std::size_t stride = bytes_;
    for (int axis = shape_.rank(); axis-- > 0;) {
      strides_[axis] = stride;
      stride *= static_cast<std::size_t>(shape_.dim(axis));
    }
  }
  void take(const std::byte* from, std::size_t count) noexcept {
    for (; count > 0; --count, from += bytes_) {
      std::memcpy(to_, from, bytes_);
      for (int axis = 0; axis < shape_.rank(); ++axis) {
        to_ += strides_[axis];
        if (++index_[axis] < shape_.dim(axis)) break;
        to_ -= strides_[axis] * static_cast<std::size_t>(shape_.dim(axis));
        index_[axis] = 0;
      }
    }
  }

 private:
  const Shape shape_;
  const std::size_t bytes_;
  std::byte* to_;
  std::size_t strides_[kMaxRank] = {};
  std::int64_t index_[kMaxRank] = {};
};

}  // namespace

NpyArray read_npy_header(NpyBytes& bytes) {
  constexpr std::size_t kPrefix = kMagic.size() + 4;  // with the version and a two-byte length
  unsigned char prefix[kPrefix + 2] = {};
  const auto damaged = [&](const std::string& why) {
    bytes.fail("is no NumPy array, or damaged: " + why);
  };
  if (bytes.count() < kPrefix) damaged("it has " + std::to_string(bytes.count()) + " bytes");
  bytes.read(prefix, kPrefix);
  if (std::memcmp(prefix, kMagic.data(), kMagic.size()) != 0)
    damaged("it does not begin with \\x93NUMPY");
  const unsigned version = prefix[kMagic.size()];
  if (version < 1 || version > 3)
    bytes.fail("is of version " + std::to_string(version) + " of NumPy's format; ebb reads 1 to 3");
  const std::size_t header_at = version == 1 ? kPrefix : kPrefix + 2;
  if (bytes.count() < header_at) damaged("it ends inside its header");
  bytes.read(prefix + kPrefix, header_at - kPrefix);
  std::uint64_t length = 0;
  for (std::size_t i = header_at; i-- > kMagic.size() + 2;) length = length << 8 | prefix[i];
  if (length > kMostHeaderBytes || length > bytes.count() - header_at)
    damaged("its header would have " + std::to_string(length) + " bytes");

  std::string text(static_cast<std::size_t>(length), '\0');
  bytes.read(text.data(), text.size());
  NpyArray array;
  HeaderParser(bytes, text).parse(array);
  array.header_bytes = header_at + length;
  const std::uint64_t wanted = array.spec.bytes(), available = bytes.count() - array.header_bytes;
  if (wanted != available)
    bytes.fail("is " + array.spec.to_string() + ", which is " + std::to_string(wanted) +
               " bytes, but has " + std::to_string(available));
  return array;
}

void read_npy_values(NpyBytes& from, const NpyArray& array, void* values) {
  const std::size_t bytes = array.spec.bytes();
  if (!array.is_column_major || array.spec.shape.rank() < 2) {
    from.read(values, bytes);
  } else {
    Scatter scatter(array.spec, values);
    std::vector<std::byte> chunk(std::min(bytes, kChunkBytes));
    for (std::size_t at = 0; at < bytes; at += chunk.size()) {
      chunk.resize(std::min(bytes - at, kChunkBytes));
      from.read(chunk.data(), chunk.size());
      scatter.take(chunk.data(), chunk.size() / size_of(array.spec.dtype));
    }
  }
  if (array.spec.dtype == DType::boolean) make_booleans(values, bytes);
}

std::string make_npy_header(const Spec& spec, const char* what) {
  if (spec.shape.is_open()) refuse(what, "the shape " + spec.shape.to_string() + " is open");
  const auto* known = std::find_if(std::begin(kDTypes), std::end(kDTypes),
                                   [&](const auto& entry) { return entry.dtype == spec.dtype; });
  if (known == std::end(kDTypes))
    refuse(what, std::string("NumPy has no ") + name(spec.dtype) +
                     "; cast it to f32, which has all its values");
  std::string dict =
      "{'descr': '" + std::string(known->name) + "', 'fortran_order': False, 'shape': (";
  for (int axis = 0; axis < spec.shape.rank(); ++axis)
    dict += (axis ? " " : "") + std::to_string(spec.shape.dim(axis)) + ",";
  if (spec.shape.rank() > 1) dict.pop_back();
  dict += "), }";
  const std::size_t before = kMagic.size() + 4;
  const std::size_t total = (before + dict.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dict.append(total - before - dict.size() - 1, ' ');
  dict += '\n';
  std::string header(kMagic);
  header +=
      {'\x01', '\x00', static_cast<char>(dict.size() & 0xff), static_cast<char>(dict.size() >> 8)};
  return header + dict;
}

}  // namespace ebb::detail

namespace ebb::npy {

void write(const std::string& file, const Spec& spec, const void* values) {
  const std::string header = detail::make_npy_header(spec, "npy");
  detail::OutputFile out(file);
  out.write(header.data(), header.size());
  out.write(values, spec.bytes());
  out.commit();
}

void check_write(const std::string& file, const Spec& spec) {
  detail::make_npy_header(spec, "npy");
  detail::OutputFile::check(file);
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

File::File(const std::string& file) : file_(file), array_(read_header(file_)) {}

void File::read(void* values) const {
  FileBytes bytes(file_, array_.header_bytes);
  detail::read_npy_values(bytes, array_, values);
}

}  // namespace ebb::npy
