#include "ebb/core/data/csv_data.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "ebb/core/base/error.h"
#include "ebb/core/base/nearest.h"
#include "ebb/core/data/csv.h"
#include "ebb/core/data/host_values.h"

namespace ebb {

namespace {

using Names = std::vector<std::string>;

bool has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Numbers the texts of a column in the order in which they come.
class Codes {
 public:
  // `known`: all permitted texts; null: any text.
  explicit Codes(const Names* known) : is_open_(!known) {
    if (known)
      for (const std::string& name : *known) add(name);
  }

  std::int32_t code_of(const detail::CsvReader& reader, std::size_t column) {
    text_ = reader.field(column);
    const auto found = codes_.find(text_);
    if (found != codes_.end()) return found->second;
    if (!is_open_)
      reader.fail_at(column,
                     "is none of its categories, which are " + detail::nearest(text_, names_));
    return add(text_);
  }

  // Sorts newly seen texts by their bytes. Returns the new number of each old one.
  std::vector<std::int32_t> sort() {
    std::vector<std::int32_t> places(names_.size());
    std::iota(places.begin(), places.end(), 0);
    if (!is_open_) return places;
    std::sort(names_.begin(), names_.end());
    for (std::size_t i = 0; i < names_.size(); ++i)
      places[static_cast<std::size_t>(codes_.at(names_[i]))] = static_cast<std::int32_t>(i);
    return places;
  }
  const Names& names() const noexcept { return names_; }

 private:
  std::int32_t add(const std::string& name) {
    names_.push_back(name);
    return codes_.emplace(name, static_cast<std::int32_t>(names_.size() - 1)).first->second;
  }

  const bool is_open_;
  Names names_;
  std::unordered_map<std::string, std::int32_t> codes_;
  std::string text_;  // the text looked up; a member, so that look-ups do not allocate
};

// A column to read.
struct Column {
  std::size_t field = 0;
  Codes* codes = nullptr;  // of a text column
  bool is_one_hot = false;
  std::vector<std::int32_t> places = {};  // the sorted number of each code
  std::size_t width() const { return is_one_hot ? places.size() : 1; }
};

class Builder {
 public:
  Builder(const std::string& file, const DataSetCsvOptions& options)
      : options_(options), reader_(file, options.format) {
    for (const std::string& word : options.missing_words)
      if (!word.empty()) begins_missing_[static_cast<unsigned char>(word[0])] = true;
    if (!options.label.empty() && !options.targets.empty())
      detail::refuse("DataSet", "takes a label or targets, not both");
    target_names_ = options.label.empty() ? options.targets : Names{options.label};
    dtype_ = options.label.empty() ? options.target_dtype : DType::i32;
    if (dtype_ != DType::f32 && dtype_ != DType::i32 && dtype_ != DType::i64)
      detail::refuse("DataSet",
                     std::string("targets of a CSV are f32, i32 or i64, not ") + name(dtype_));
    for (const std::string& name : target_names_)
      targets_.push_back(column(name, reader_.column(name)));
    for (const std::string& name : options.inputs) add_input(name, reader_.column(name));
    if (options.inputs.empty())  // by number: columns that nobody asks for may share a name
      for (std::size_t i = 0; i < reader_.columns().size(); ++i)
        if (!has(target_names_, reader_.columns()[i])) add_input(reader_.columns()[i], i);
    if (inputs_.empty())
      detail::refuse_file(file + ": has no column but " +
                          (options.label.empty() ? "targets" : "the label"));
    for (const Names* names : {&options.codes, &options.one_hot})
      for (const std::string& name : *names) {
        reader_.column(name);  // throws if there is none
        if (!codes_.contains(name))
          detail::refuse("DataSet", "a column of codes or one_hot is neither input nor target: '" +
                                        name + "'");
      }
    for (const std::string& name : options.one_hot)
      if (has(target_names_, name))
        detail::refuse("DataSet", "a target has codes and is not one_hot: '" + name + "'");
    reader_.set_hint("; a column of text is named in .codes, or as an input in .one_hot");
    read(file);
  }

  CsvData take() {
    Categories categories;
    for (auto& [name, codes] : codes_) {
      const std::vector<std::int32_t> places = codes.sort();
      for (std::vector<Column>* columns : {&inputs_, &targets_})
        for (Column& column : *columns)
          if (column.codes == &codes) column.places = places;
      categories.emplace(name, codes.names());
    }
    Names names;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].is_one_hot)
        for (const std::string& category : inputs_[i].codes->names())
          names.push_back(input_names_[i] + "=" + category);
      else
        names.push_back(input_names_[i]);
    Tensors fields{inputs()};
    if (!targets_.empty()) fields.push_back(targets());
    return {DataSet::of(fields), std::move(names), target_names_, std::move(categories)};
  }

 private:
  void add_input(const std::string& name, std::size_t field) {
    inputs_.push_back(column(name, field));
    input_names_.push_back(name);
  }

  Column column(const std::string& name, std::size_t field) {
    Column column{.field = field, .is_one_hot = has(options_.one_hot, name)};
    if (!column.is_one_hot && !has(options_.codes, name)) return column;
    const auto known = options_.categories.find(name);
    column.codes =
        &codes_.try_emplace(name, known == options_.categories.end() ? nullptr : &known->second)
             .first->second;
    return column;
  }

  bool is_missing(const Column& column) const {
    const std::string_view text = detail::without_blanks(reader_.field(column.field));
    return text.empty() || (begins_missing_[static_cast<unsigned char>(text[0])] &&
                            has(options_.missing_words, text));
  }

  void read(const std::string& file) {
    const auto is_missing_in = [this](const std::vector<Column>& columns) {
      return std::any_of(columns.begin(), columns.end(),
                         [this](const Column& column) { return is_missing(column); });
    };
    bool has_dropped = false;
    while (reader_.next()) {
      if (options_.missing == Missing::drop_row &&
          (is_missing_in(inputs_) || is_missing_in(targets_))) {
        has_dropped = true;
        continue;
      }
      for (const Column& column : inputs_) values_.push_back(input(column));
      for (const Column& column : targets_) read_target(column);
      ++count_;
    }
    if (count_ > 0) return;
    detail::refuse_file(file + (has_dropped              ? ": has no line without a missing value"
                                : options_.format.header ? ": has no lines below its header"
                                                         : ": has no lines"));
  }

  float input(const Column& column) {
    if (is_missing(column)) {
      if (!column.codes && options_.missing == Missing::nan)
        return std::numeric_limits<float>::quiet_NaN();
      if (!column.codes && options_.missing == Missing::fill)
        return static_cast<float>(options_.fill);
      refuse_missing(column);
    }
    return real(column);
  }

  float real(const Column& column) const {
    if (!column.codes) return reader_.number_f32(column.field);
    constexpr std::int32_t most = 1 << 24;
    const std::int32_t code = column.codes->code_of(reader_, column.field);
    if (code >= most) reader_.fail_at(column.field, "is one category more than an f32 can number");
    return static_cast<float>(code);
  }

  void read_target(const Column& column) {
    if (is_missing(column)) refuse_missing(column);
    if (dtype_ == DType::f32)
      real_targets_.push_back(real(column));
    else
      whole_targets_.push_back(column.codes           ? column.codes->code_of(reader_, column.field)
                               : dtype_ == DType::i32 ? reader_.integer_i32(column.field)
                                                      : reader_.integer_i64(column.field));
  }

  [[noreturn]] void refuse_missing(const Column& column) const {
    reader_.fail_at(
        column.field,
        std::string(reader_.field(column.field).empty() ? "is empty" : "stands for nothing") +
            ", where a " + (column.codes ? "text" : "number") +
            " should be; options.missing can drop the line" +
            (column.codes ? "" : ", or fill the value if it is an input"));
  }

  Tensor inputs() const {
    std::size_t width = 0;
    for (const Column& column : inputs_) width += column.width();
    const auto shown = static_cast<std::int64_t>(width);
    return detail::make_input<float>({count_, shown}, "DataSet", [&](float* to) {
      for (auto from = values_.begin(); from != values_.end();)
        for (const Column& column : inputs_) {
          const float value = *from++;
          const std::int32_t place =
              column.codes ? column.places[static_cast<std::size_t>(value)] : 0;
          if (column.is_one_hot)
            for (std::size_t i = 0; i < column.width(); ++i)
              *to++ = i == static_cast<std::size_t>(place) ? 1.f : 0.f;
          else
            *to++ = column.codes ? static_cast<float>(place) : value;
        }
    });
  }

  template <class To, class From>
  Tensor targets_of(const std::vector<From>& values) const {
    Shape shape{count_};
    if (options_.label.empty()) shape.push_back(static_cast<std::int64_t>(targets_.size()));
    return detail::make_input<To>(shape, "DataSet", [&](To* to) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Column& column = targets_[i % targets_.size()];
        to[i] = column.codes ? static_cast<To>(column.places[static_cast<std::size_t>(values[i])])
                             : static_cast<To>(values[i]);
      }
    });
  }
  Tensor targets() const {
    if (dtype_ == DType::f32) return targets_of<float>(real_targets_);
    if (dtype_ == DType::i32) return targets_of<std::int32_t>(whole_targets_);
    return targets_of<std::int64_t>(whole_targets_);
  }

  const DataSetCsvOptions& options_;
  detail::CsvReader reader_;
  std::array<bool, 256> begins_missing_{};  // first bytes of the words for missing values
  Names input_names_, target_names_;
  DType dtype_ = DType::f32;            // of targets
  std::map<std::string, Codes> codes_;  // by column
  std::vector<Column> inputs_, targets_;
  std::vector<float> values_;                // inputs, row by row; codes as they came
  std::vector<float> real_targets_;          // targets, likewise: of f32, or
  std::vector<std::int64_t> whole_targets_;  // of integers
  std::int64_t count_ = 0;
};

}  // namespace

CsvData load_csv(const std::string& file, const DataSetCsvOptions& options, CallSite site) {
  const detail::CallSiteScope at(site);
  return Builder(file, options).take();
}

DataSet DataSet::csv(const std::string& file, const DataSetCsvOptions& options, CallSite site) {
  return load_csv(file, options, site).data;
}

}  // namespace ebb
