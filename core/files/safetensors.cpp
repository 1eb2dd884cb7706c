#include "ebb/core/files/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "ebb/core/base/error.h"
#include "ebb/core/files/output_file.h"

namespace ebb::safetensors {

namespace {

using detail::in_quotes;
using detail::InputFile;
using Json = nlohmann::json;

// Maximum bytes of a header, as in the reference implementation.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
// The values begin at a multiple of this.
constexpr std::uint64_t kAlignment = 8;
constexpr std::uint64_t kLengthBytes = 8;
constexpr const char* kMetadataName = "__metadata__";

struct KnownDType {
  const char* name;
  DType dtype;
};
constexpr KnownDType kDTypes[] = {
    {"F64", DType::f64}, {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16},
    {"I64", DType::i64}, {"I32", DType::i32}, {"U8", DType::u8},   {"BOOL", DType::boolean}};

// Reads the header while it is parsed, so that a hostile one takes no more memory than its tensors
// need: nesting and lists beyond kMaxRank are never built.
class Parser final : public nlohmann::json_sax<Json> {
 public:
  Parser(std::vector<File::Entry>& entries, Metadata& metadata)
      : entries_(entries), metadata_(metadata) {}

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
      if (!metadata_.emplace(std::move(key_), std::move(value)).second)
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
    const std::uint64_t begin = offsets_[0], end = offsets_[1];
    if (begin > end)
      return wrong("ends at " + std::to_string(end) + ", before it begins at " +
                   std::to_string(begin));
    Shape shape;
    for (const std::uint64_t size : dims_)
      shape.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(size, kMaxElements + 1)));
    if (!shape.is_countable()) return wrong("has a shape beyond what can be addressed");
    const Spec spec{*dtype_, shape};
    if (spec.bytes() != end - begin)
      return wrong("is " + spec.to_string() + ", which is " + std::to_string(spec.bytes()) +
                   " bytes, but has " + std::to_string(end - begin));
    entries_.push_back({name_, spec, begin});
    return true;
  }

  std::vector<File::Entry>& entries_;
  Metadata& metadata_;
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

// Checks that the tensors follow each other without gaps, through all `available` bytes of values.
void check_places(const InputFile& file, std::span<const File::Entry> entries,
                  std::uint64_t available) {
  std::vector<const File::Entry*> order;
  for (const File::Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const File::Entry* a, const File::Entry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->spec.bytes() < b->spec.bytes();
  });
  std::uint64_t at = 0;
  for (const File::Entry* entry : order) {
    const std::string tensor = "tensor " + in_quotes(entry->name);
    const std::uint64_t end = entry->begin + entry->spec.bytes();
    if (entry->begin != at)
      file.fail(tensor + " begins at byte " + std::to_string(entry->begin) + " of the values, " +
                (entry->begin < at
                     ? "inside the tensor before it"
                     : "behind a gap of " + std::to_string(entry->begin - at) + " bytes"));
    if (end > available)
      file.fail(tensor + " ends at byte " + std::to_string(end) + " of the values, of which " +
                "the file has " + std::to_string(available));
    at = end;
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

// Reads a header's text, behind its length.
std::string read_header(const InputFile& file) {
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
  return text;
}

// Builds the start of a file with these tensors, whose values begin at `begins`: length and header,
// padded to kAlignment. Throws Error for a name that is given twice, reserved or not UTF-8, and for
// more than the format holds.
std::string make_header(std::span<const View> tensors, std::span<const std::uint64_t> begins,
                        const Metadata& metadata) {
  const auto json = [](const std::string& text) {
    try {
      return Json(text).dump();
    } catch (const Json::exception&) {
      throw Error("[safetensors] " + in_quotes(text) + " is not UTF-8");
    }
  };
  std::string text = "{";
  const auto add = [&](const std::string& key, const std::string& value) {
    text += (text.back() == '{' ? "" : ",") + json(key) + ":" + value;
  };
  if (!metadata.empty()) {
    text += json(kMetadataName) + ":{";
    for (const auto& [key, value] : metadata) add(key, json(value));
    text += '}';
  }
  std::unordered_set<std::string> names = {kMetadataName};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, spec, values] = tensors[i];
    if (!names.insert(name).second)
      throw Error("[safetensors] the name " + in_quotes(name) +
                  (name == kMetadataName ? " is reserved" : " is given twice"));
    const auto known = std::ranges::find(kDTypes, spec.dtype, &KnownDType::dtype);
    std::string dims;  // as text, since a JSON object's destructor allocates
    for (const std::int64_t dim : spec.shape.dims())
      dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    add(name, std::string(R"({"dtype":")") + known->name + R"(","shape":[)" + dims +
                  R"(],"data_offsets":[)" + std::to_string(begins[i]) + "," +
                  std::to_string(begins[i] + spec.bytes()) + "]}");
  }
  text += '}';
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  if (text.size() > kMostHeaderBytes)
    throw Error("[safetensors] names and metadata of " + std::to_string(text.size()) +
                " bytes are more than a header holds");

  return detail::little_endian(text.size(), kLengthBytes) + text;
}

// A file that is yet to be written: its header, and its tensors in the order of their values.
struct Layout {
  std::string header;
  std::vector<std::size_t> order;
};

Layout lay_out(std::span<const View> tensors, const Metadata& metadata) {
  for (const View& tensor : tensors)
    if (tensor.spec.shape.is_open())
      throw Error("[safetensors] tensor " + in_quotes(tensor.name) + " has the open shape " +
                  tensor.spec.shape.to_string());
  // Wider elements first, so that each tensor's values are aligned to their own size.
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].spec.dtype) > size_of(tensors[b].spec.dtype);
  });
  std::vector<std::uint64_t> begins(tensors.size());
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    begins[i] = at;
    at += tensors[i].spec.bytes();
  }

  return {make_header(tensors, begins, metadata), std::move(order)};
}

}  // namespace

void write(const std::string& file, std::span<const View> tensors, const Metadata& metadata) {
  const Layout layout = lay_out(tensors, metadata);
  detail::OutputFile out(file);
  out.write(layout.header.data(), layout.header.size());
  for (const std::size_t i : layout.order) out.write(tensors[i].values, tensors[i].spec.bytes());
  out.commit();
}

std::string check_write(const std::string& file, std::span<const View> tensors,
                        const Metadata& metadata) {
  std::string header = lay_out(tensors, metadata).header;
  detail::OutputFile::check(file);
  return header;
}

void write_index(const std::string& file, const std::map<std::string, std::string>& parts,
                 std::uint64_t bytes) {
  const std::string text =
      Json({{"metadata", {{"total_size", bytes}}}, {"weight_map", parts}}).dump(1) + '\n';
  detail::OutputFile out(file + std::string(kIndexSuffix));
  out.write(text.data(), text.size());
  out.commit();
}

File::File(const std::string& file) {
  const bool is_index = file.ends_with(kIndexSuffix);
  const std::string index = is_index ? file : file + std::string(kIndexSuffix);
  if (is_index || (!std::filesystem::exists(file) && std::filesystem::exists(index)))
    open_parts(index);
  else
    open(file);
}

void File::open(const std::string& part) {
  file_.emplace(part);
  const std::string text = read_header(*file_);
  const std::size_t first = entries_.size();
  if (const std::string problem = parse(text); !problem.empty())
    file_->fail("in its header, " + problem);
  parts_.push_back(part);
  values_at_.push_back(kLengthBytes + text.size());
  check_places(*file_, std::span(entries_).subspan(first), file_->size() - values_at_.back());
}

void File::open_parts(const std::string& index) {
  const InputFile file(index);
  if (file.size() > kMostHeaderBytes) file.fail("is too long for an index");
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, text.data(), text.size());
  const Json json = Json::parse(text, nullptr, false);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object()) file.fail("is no index: it has no \"weight_map\"");
  const std::filesystem::path folder = std::filesystem::path(index).parent_path();
  for (const auto& [name, value] : map->items()) {
    const std::string part = value.is_string() ? value.get<std::string>() : "/";
    if (part.find('/') != std::string::npos)
      file.fail("has no file in its folder for tensor " + in_quotes(name));
    const std::string path = (folder / part).string();
    if (std::ranges::find(parts_, path) == parts_.end()) open(path);
    const Entry* const entry = find(name);
    if (!entry || parts_[entry->part] != path)
      file.fail("names tensor " + in_quotes(name) + " in " + in_quotes(part) +
                ", which does not have it");
  }
}

File File::of_header(const std::string& header) {
  File file;
  file.parse(std::string_view(header).substr(kLengthBytes));
  return file;
}

std::string File::parse(std::string_view header) {
  const std::size_t first = entries_.size();
  Metadata metadata;
  Parser parser(entries_, metadata);
  if (!Json::sax_parse(header.begin(), header.end(), &parser)) return parser.problem();
  metadata_.merge(metadata);
  for (std::size_t i = first; i < entries_.size(); ++i) {
    entries_[i].part = parts_.size();
    if (!indices_.emplace(entries_[i].name, i).second)
      return "tensor " + in_quotes(entries_[i].name) + " is in another part, too";
  }
  return {};
}

const File::Entry* File::find(const std::string& name) const noexcept {
  const auto found = indices_.find(name);
  return found == indices_.end() ? nullptr : &entries_[found->second];
}

void File::read(const std::string& name, void* values) const {
  const Entry* const entry = find(name);
  read(name, values, 0, entry ? entry->spec.shape.elements() : 0);
}

void File::read(const std::string& name, void* values, std::int64_t first,
                std::int64_t count) const {
  const Entry* const entry = find(name);
  if (!file_) throw Error("[safetensors] there is only a header, and no values to read");
  if (!entry) file_->fail("has no tensor " + in_quotes(name));
  const std::string& part = parts_[entry->part];
  if (file_->name() != part) file_.emplace(part);
  const std::size_t size = size_of(entry->spec.dtype);
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  file_->read(values_at_[entry->part] + entry->begin + static_cast<std::size_t>(first) * size,
              values, bytes);
  if (entry->spec.dtype == DType::boolean) detail::make_booleans(values, bytes);
}

}  // namespace ebb::safetensors
