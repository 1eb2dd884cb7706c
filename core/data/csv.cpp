#include "ebb/core/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <locale>
#include <sstream>

#include "ebb/core/base/error.h"
#include "ebb/core/base/nearest.h"

namespace ebb {

std::vector<std::string> csv_columns(const std::string& file, const CsvFormat& format,
                                     CallSite site) {
  const detail::CallSiteScope at(site);
  return detail::CsvReader(file, format).columns();
}

namespace detail {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// from_chars accepts no plus; "+-1" must stay no number.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

CsvReader::CsvReader(const std::string& file, const CsvFormat& format)
    : file_(file), has_header_(format.header), comment_(format.comment) {
  if (file_.size() >= kByteOrderMark.size()) {
    char first[kByteOrderMark.size()];
    file_.read(0, first, sizeof first);
    if (std::string_view(first, sizeof first) == kByteOrderMark) file_at_ = sizeof first;
  }
  separator_ = format.separator ? *format.separator : guess_separator();
  if (separator_ == '"' || static_cast<unsigned char>(separator_) >= 0x80 || separator_ == '\n' ||
      separator_ == '\r' || separator_ == comment_)
    refuse("csv", "fields cannot be separated by " + in_quotes(std::string(1, separator_)));
  if (!read_record())
    file_.fail(format.header ? "is empty, where a header with the names of columns should be"
                             : "is empty");
  for (std::size_t i = 0; i < ends_.size(); ++i)
    columns_.push_back(format.header ? std::string(field(i)) : std::to_string(i));
  has_first_ = !format.header;
}

std::size_t CsvReader::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end()) {
    std::vector<std::string> names;
    for (const std::string& column : columns_) names.push_back(in_quotes(column));
    file_.fail("has no column " + in_quotes(name) + "; it has " +
               nearest(in_quotes(name), std::move(names)));
  }
  if (std::find(found + 1, columns_.end(), name) != columns_.end())
    file_.fail("has more than one column " + in_quotes(name));
  return static_cast<std::size_t>(found - columns_.begin());
}

bool CsvReader::next() {
  if (has_first_) {
    has_first_ = false;
    return true;
  }
  if (!read_record()) return false;
  if (ends_.size() != columns_.size())
    fail("has " + std::to_string(ends_.size()) + (ends_.size() == 1 ? " field" : " fields") +
         (has_header_ ? ", the header has " : ", the first line has ") +
         std::to_string(columns_.size()));
  return true;
}

std::string_view CsvReader::field(std::size_t column) const {
  const std::size_t begin = column == 0 ? 0 : ends_[column - 1];
  return std::string_view(record_).substr(begin, ends_[column] - begin);
}

template <class T>
T CsvReader::read_number(std::size_t column, const char* type) const {
  std::string_view text = without_blanks(field(column));  // a quoted field keeps its spaces
  if (text.empty()) fail_at(column, "is empty, where a number should be");
  text = without_plus(text);
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    fail_at(column, "is not a number" + hint_);
  if (error == std::errc::result_out_of_range) {
    // Too large, or rounded to 0: a stream fails on the former alone.
    std::istringstream stream{std::string(text)};
    stream.imbue(std::locale::classic());
    stream >> value;
    if (stream.fail()) fail_at(column, std::string("is beyond the range of ") + type);
  }
  if (!std::isfinite(value)) fail_at(column, "is not a finite number");
  return value;
}

double CsvReader::number(std::size_t column) const {
  return read_number<double>(column, "numbers");
}

float CsvReader::number_f32(std::size_t column) const { return read_number<float>(column, "f32"); }

std::int32_t CsvReader::integer_i32(std::size_t column) const {
  const std::int64_t value = integer_i64(column);
  if (!std::in_range<std::int32_t>(value)) fail_at(column, "is beyond the range of i32");
  return static_cast<std::int32_t>(value);
}

// Reads a number written as an integer directly: a double has 53 bits, too few for an i64.
std::int64_t CsvReader::integer_i64(std::size_t column) const {
  const std::string_view text = without_plus(without_blanks(field(column)));
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  const double number = this->number(column);
  if (number != std::trunc(number)) fail_at(column, "is not a whole number");
  if (!(std::abs(number) < 0x1p53)) fail_at(column, "is beyond the range of i64, or not exact");
  return static_cast<std::int64_t>(number);
}

int CsvReader::peek() {
  if (buffer_at_ == buffer_.size()) {
    const std::uint64_t left = file_.size() - file_at_;
    if (left == 0) return kEnd;
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kBufferBytes)));
    buffer_at_ = 0;
    file_.read(file_at_, buffer_.data(), buffer_.size());
    file_at_ += buffer_.size();
  }
  return static_cast<unsigned char>(buffer_[buffer_at_]);
}

int CsvReader::get() {
  const int c = peek();
  if (c == kEnd) return kEnd;
  ++buffer_at_;
  if (c == '\n') ++line_;
  return c;
}

// Guesses the separator: whichever of `, ; tab |` is most frequent outside quotes in the first
// record, as far as the first buffer goes.
char CsvReader::guess_separator() {
  constexpr std::string_view usual = ",;\t|";
  std::size_t counts[usual.size()] = {};
  bool is_quoted = false, begins_line = true, is_comment = false, has_any = false;
  peek();
  for (const char c : buffer_) {
    if (begins_line && !is_quoted) is_comment = comment_ && c == *comment_;
    begins_line = c == '\n';
    if (is_comment) continue;
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '\n' && has_any) break;
    has_any |= c != '\n' && c != '\r';
    if (const std::size_t which = usual.find(c); which != usual.npos) ++counts[which];
  }
  return usual[static_cast<std::size_t>(std::max_element(counts, counts + usual.size()) - counts)];
}

// Fills record_ and ends_ with the next record that is not an empty line or a comment.
bool CsvReader::read_record() {
  record_.clear();
  ends_.clear();
  for (;;) {
    record_line_ = line_;
    const int c = peek();
    if (c == kEnd) return false;
    if (comment_ && c == static_cast<unsigned char>(*comment_)) {
      while (peek() != '\n' && peek() != kEnd) get();
    } else if (c == '\n') {
      get();
    } else if (c == '\r') {
      get();
      if (peek() != '\n') {
        record_ = '\r';
        break;
      }
    } else {
      break;
    }
  }

  for (;;) {
    const std::size_t begin = ends_.empty() ? 0 : ends_.back();
    const bool quotes = record_.size() == begin && peek() == '"';
    if (quotes)
      read_quoted();
    else
      read_plain();
    int c = get();
    if (quotes && c == '\r' && peek() == '\n') c = get();
    if (quotes && c != separator_ && c != '\n' && c != kEnd)
      fail("has " + in_quotes(std::string(1, static_cast<char>(c))) + " behind the closing quote");
    if (!quotes) {
      if (c == '\n' && record_.size() > begin && record_.back() == '\r') record_.pop_back();
      while (record_.size() > begin && is_blank(record_.back())) record_.pop_back();
      std::size_t blanks = 0;
      while (begin + blanks < record_.size() && is_blank(record_[begin + blanks])) ++blanks;
      if (blanks > 0) record_.erase(begin, blanks);
    }
    ends_.push_back(record_.size());
    if (c != separator_) return true;
  }
}

// Reads up to the separator or the end of the line.
void CsvReader::read_plain() {
  while (peek() != kEnd) {
    const auto from = buffer_.begin() + static_cast<std::ptrdiff_t>(buffer_at_);
    const auto end =
        std::find_if(from, buffer_.end(), [this](char c) { return c == separator_ || c == '\n'; });
    record_.append(from, end);
    buffer_at_ = static_cast<std::size_t>(end - buffer_.begin());
    if (end != buffer_.end()) return;
  }
}

// Reads from the opening quote to behind the closing one.
void CsvReader::read_quoted() {
  get();
  for (;;) {
    const int c = get();
    if (c == kEnd) fail("has quotes that never end");
    if (c == '"') {
      if (peek() != '"') return;
      get();
    }
    record_ += static_cast<char>(c);
  }
}

void CsvReader::fail(const std::string& text) const {
  refuse_file(file_.name() + ":" + std::to_string(record_line_) + ": the line " + text);
}

void CsvReader::fail_at(std::size_t column, const std::string& text) const {
  refuse_file(file_.name() + ":" + std::to_string(record_line_) + ": column " +
              in_quotes(columns_[column]) + ": " + in_quotes(field(column)) + " " + text);
}

}  // namespace detail
}  // namespace ebb
