#include "ebb/core/files/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "ebb/core/base/error.h"

namespace ebb::safetensors::detail {

namespace {

using ebb::detail::in_quotes;
using ebb::detail::InputFile;
using Json = nlohmann::json;

constexpr struct {
  const char* name;
  DType dtype;
} kDTypes[] = {{"F64", DType::f64},   {"F32", DType::f32},     {"F16", DType::f16},
               {"BF16", DType::bf16}, {"I64", DType::i64},     {"I32", DType::i32},
               {"U8", DType::u8},     {"BOOL", DType::boolean}};

// Reads the header while it is parsed, so that a hostile one takes no more memory than its tensors
// need: nesting and lists beyond kMaxRank are never built.
class Parser final : public nlohmann::json_sax<Json> {
 public:
  explicit Parser(Header& header) : header_(header) {}

  // Description of the first error; empty if there is none.
  const std::string& problem() const noexcept { return problem_; }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return unexpected("the number " + std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return unexpected("the number " + in_quotes(text));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (dims_.size() == kMaxRank)
        return wrong("has more than " + std::to_string(kMaxRank) + " dimensions");
      dims_.push_back(value);
      return true;
    }
    if (place_ == Place::offsets) {
      if (offsets_.size() == 2) return wrong("has more than two data_offsets");
      offsets_.push_back(value);
      return true;
    }
    return unexpected("the number " + std::to_string(value));
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      if (!header_.metadata.emplace(std::move(key_), std::move(value)).second)
        return fail("the metadata have a key twice");
      return true;
    }
    if (place_ == Place::tensor && key_ == "dtype") {
      for (const auto& known : kDTypes)
        if (value == known.name) dtype_ = known.dtype;
      return dtype_ || wrong("has the dtype " + in_quotes(value) + ", which ebb does not know");
    }
    return unexpected("the text " + in_quotes(value));
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::before) {
      place_ = Place::header;
    } else if (place_ == Place::header && name_ == kMetadataName) {
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      place_ = Place::tensor;
      seen_.clear();
      dtype_.reset();
      dims_.clear();
      offsets_.clear();
    } else {
      return unexpected("an object");
    }
    return true;
  }

  bool key(string_t& value) override {
    if (place_ == Place::header) {
      name_ = std::move(value);
      return names_.insert(name_).second ||
             fail("the name " + in_quotes(name_) + " is there twice");
    }
    key_ = std::move(value);
    if (place_ == Place::tensor) {
      if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
        return wrong("has the unknown key " + in_quotes(key_));
      if (!seen_.insert(key_).second) return wrong("has " + in_quotes(key_) + " twice");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) return end_tensor();
    place_ = place_ == Place::metadata ? Place::header : Place::after;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") return unexpected("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    return true;
  }
  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 7: syntax error ..."
    std::string text = error.what();
    if (const std::size_t colon = text.find(": "); colon != std::string::npos)
      text.erase(0, colon + 2);
    constexpr std::size_t longest = 200;
    if (text.size() > longest) text = text.substr(0, longest) + "...";
    return fail("no JSON at byte " + std::to_string(kLengthBytes + position) + ": " + text);
  }

 private:
  // The open object or list that the parser is in.
  enum class Place { before, header, metadata, tensor, shape, offsets, after };

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool wrong(const std::string& text) { return fail("tensor " + in_quotes(name_) + " " + text); }
  bool unexpected(const std::string& what) {
    switch (place_) {
      case Place::shape:
        return wrong("has " + what + " in its shape");
      case Place::offsets:
        return wrong("has " + what + " in its data_offsets");
      case Place::tensor:
        return wrong("has " + what + " as its " + key_);
      case Place::metadata:
        return fail("the metadata have " + what + " under " + in_quotes(key_) +
                    ", where a text should be");
      case Place::header:
        return fail(in_quotes(name_) + " is " + what + ", where an object should be");
      case Place::before:
      case Place::after:
        break;
    }
    return fail("it is " + what + ", where an object should be");
  }

  bool end_tensor() {
    place_ = Place::header;
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!seen_.contains(key)) return wrong(std::string("has no ") + key);
    if (offsets_.size() != 2) return wrong("has fewer than two data_offsets");
    const Extent extent{offsets_[0], offsets_[1]};
    if (extent.begin > extent.end)
      return wrong("ends at " + std::to_string(extent.end) + ", before it begins at " +
                   std::to_string(extent.begin));
    Shape shape;
    for (const std::uint64_t size : dims_)
      shape.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(size, kMaxElements + 1)));
    if (!shape.is_countable()) return wrong("has a shape beyond what can be addressed");
    const Spec spec{*dtype_, shape};
    if (spec.bytes() != extent.end - extent.begin)
      return wrong("is " + spec.to_string() + ", which is " + std::to_string(spec.bytes()) +
                   " bytes, but has " + std::to_string(extent.end - extent.begin));
    header_.entries.push_back({name_, spec});
    header_.extents.push_back(extent);
    return true;
  }

  Header& header_;
  std::string problem_;
  Place place_ = Place::before;
  std::unordered_set<std::string> names_;
  std::string name_;  // name of the current tensor
  std::string key_;   // key inside the tensor or the metadata
  std::unordered_set<std::string> seen_;
  std::optional<DType> dtype_;
  std::vector<std::uint64_t> dims_;
  std::vector<std::uint64_t> offsets_;
};

// Checks that the tensors follow each other without gaps, from the end of the header to the end of
// the file.
void check_extents(const InputFile& file, const Header& header) {
  std::vector<std::size_t> order(header.extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Extent &x = header.extents[a], &y = header.extents[b];
    return x.begin != y.begin ? x.begin < y.begin : x.end < y.end;
  });
  const std::uint64_t available = file.size() - header.values_at;
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    const Extent& extent = header.extents[i];
    const std::string tensor = "tensor " + in_quotes(header.entries[i].name);
    if (extent.begin != at)
      file.fail(tensor + " begins at byte " + std::to_string(extent.begin) + " of the values, " +
                (extent.begin < at
                     ? "inside the tensor before it"
                     : "behind a gap of " + std::to_string(extent.begin - at) + " bytes"));
    if (extent.end > available)
      file.fail(tensor + " ends at byte " + std::to_string(extent.end) +
                " of the values, of which " + "the file has " + std::to_string(available));
    at = extent.end;
  }
  if (at != available)
    file.fail("has " + std::to_string(available - at) + " bytes behind its last tensor");
}

// Whether torch.save() wrote the file: a pickle, inside a ZIP archive since PyTorch 1.6.
bool is_of_torch(const InputFile& file) {
  std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), 128)), '\0');
  file.read(0, start.data(), start.size());
  return start.starts_with("\x80\x02") ||
         (start.starts_with("PK\3\4") && start.find("/data.pkl") != start.npos);
}

}  // namespace

Header read_header(const InputFile& file) {
  if (file.size() < kLengthBytes)
    file.fail("is no safetensors file: it has " + std::to_string(file.size()) + " bytes");
  unsigned char little_endian[kLengthBytes];
  file.read(0, little_endian, kLengthBytes);
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | little_endian[i];
  if (length > kMostHeaderBytes || length > file.size() - kLengthBytes) {
    if (is_of_torch(file))
      file.fail(
          "is a pickle that torch.save() wrote, no safetensors file; in Python, "
          "safetensors.torch.save_file(torch.load(\"model.pt\"), \"model.safetensors\") makes one");
    file.fail("is no safetensors file, or damaged: its header would have " +
              std::to_string(length) + " bytes");
  }

  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(kLengthBytes, text.data(), text.size());
  // The parser would take a zero byte for the end of the text.
  if (text.empty() || text.front() != '{' || text.find('\0') != std::string::npos)
    file.fail("its header is no JSON object");
  Header header;
  header.values_at = kLengthBytes + length;
  Parser parser(header);
  if (!Json::sax_parse(text.begin(), text.end(), &parser))
    file.fail("in its header, " + parser.problem());
  check_extents(file, header);
  return header;
}

std::string make_header(std::span<const View> tensors, std::span<const Extent> extents,
                        const Metadata& metadata) {
  // Quotes a text for JSON.
  const auto json = [](const std::string& text) {
    try {
      return Json(text).dump();
    } catch (const Json::exception&) {
      throw Error("[safetensors] " + in_quotes(text) + " is not UTF-8");
    }
  };
  std::string text = "{";
  const auto separate = [&text] {
    if (text.back() != '{') text += ',';
  };
  if (!metadata.empty()) {
    text += json(kMetadataName) + ":{";
    for (const auto& [key, value] : metadata) {
      separate();
      text += json(key) + ":" + json(value);
    }
    text += '}';
  }
  std::unordered_set<std::string> names = {kMetadataName};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const View& tensor = tensors[i];
    if (!names.insert(tensor.name).second)
      throw Error("[safetensors] the name " + in_quotes(tensor.name) +
                  (tensor.name == kMetadataName ? " is reserved" : " is given twice"));
    separate();
    text += json(tensor.name) + R"(:{"dtype":")";
    for (const auto& known : kDTypes)
      if (tensor.spec.dtype == known.dtype) text += known.name;
    text += R"(","shape":[)";
    for (int axis = 0; axis < tensor.spec.shape.rank(); ++axis)
      text += (axis ? "," : "") + std::to_string(tensor.spec.shape[axis]);
    text += R"(],"data_offsets":[)" + std::to_string(extents[i].begin) + "," +
            std::to_string(extents[i].end) + "]}";
  }
  text += '}';
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  if (text.size() > kMostHeaderBytes)
    throw Error("[safetensors] names and metadata of " + std::to_string(text.size()) +
                " bytes are more than a header holds");

  std::string length(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

}  // namespace ebb::safetensors::detail
