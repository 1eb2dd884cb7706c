#include "ebb/core/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "ebb/core/base/error.h"

namespace ebb::detail {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
    text += (i ? ", " : "") + in_quotes(names[i]);
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

}  // namespace

CsvReader::CsvReader(const std::string& file) : file_(file) {
  if (file_.size() >= kByteOrderMark.size()) {
    char first[kByteOrderMark.size()];
    file_.read(0, first, sizeof first);
    if (std::string_view(first, sizeof first) == kByteOrderMark) file_at_ = sizeof first;
  }
  if (!read_record()) file_.fail("is empty, where a header with the names of columns should be");
  for (std::size_t i = 0; i < ends_.size(); ++i) columns_.emplace_back(field(i));
}

std::size_t CsvReader::column(std::string_view name) const {
  const auto found = std::find(columns_.begin(), columns_.end(), name);
  if (found == columns_.end())
    file_.fail("has no column " + in_quotes(name) + "; it has " + list(columns_));
  if (std::find(found + 1, columns_.end(), name) != columns_.end())
    file_.fail("has more than one column " + in_quotes(name));
  return static_cast<std::size_t>(found - columns_.begin());
}

bool CsvReader::next() {
  if (!read_record()) return false;
  if (ends_.size() != columns_.size())
    fail("has " + std::to_string(ends_.size()) + (ends_.size() == 1 ? " field" : " fields") +
         ", the header has " + std::to_string(columns_.size()));
  return true;
}

std::string_view CsvReader::field(std::size_t column) const {
  const std::size_t begin = column == 0 ? 0 : ends_[column - 1];
  return std::string_view(record_).substr(begin, ends_[column] - begin);
}

double CsvReader::number(std::size_t column) const {
  std::string_view text = field(column);
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);  // where it was quoted
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  if (text.empty()) fail_at(column, "is empty, where a number should be");
  // from_chars knows no plus; "+-1" stays no number.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    fail_at(column, "is not a number");
  if (error == std::errc::result_out_of_range) fail_at(column, "is beyond the range of numbers");
  if (!std::isfinite(value)) fail_at(column, "is not a finite number");
  return value;
}

float CsvReader::number_f32(std::size_t column) const {
  const double value = number(column);
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
    fail_at(column, "is beyond the range of f32");
  return static_cast<float>(value);
}

std::int32_t CsvReader::integer_i32(std::size_t column) const {
  const double value = number(column);
  if (value != std::trunc(value)) fail_at(column, "is not a whole number");
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max())
    fail_at(column, "is beyond the range of i32");
  return static_cast<std::int32_t>(value);
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

// Fills record_ and ends_ with the next record that is not an empty line.
bool CsvReader::read_record() {
  record_.clear();
  ends_.clear();
  for (;; get()) {  // empty lines
    record_line_ = line_;
    if (peek() == '\r') {
      get();
      if (peek() == '\n') continue;
      record_ = '\r';
    }
    if (peek() != '\n') break;
  }
  if (peek() == kEnd && record_.empty()) return false;

  for (;;) {
    const std::size_t begin = ends_.empty() ? 0 : ends_.back();
    const bool quotes = record_.size() == begin && peek() == '"';
    if (quotes) read_quoted();
    int c = get();
    while (!quotes && c != ',' && c != '\n' && c != kEnd) {
      record_ += static_cast<char>(c);
      c = get();
    }
    if (quotes && c == '\r' && peek() == '\n') c = get();
    if (quotes && c != ',' && c != '\n' && c != kEnd)
      fail("has " + in_quotes(std::string(1, static_cast<char>(c))) + " behind the closing quote");
    if (!quotes) {
      if (c == '\n' && record_.size() > begin && record_.back() == '\r') record_.pop_back();
      while (record_.size() > begin && is_blank(record_.back())) record_.pop_back();
      std::size_t blanks = 0;
      while (begin + blanks < record_.size() && is_blank(record_[begin + blanks])) ++blanks;
      record_.erase(begin, blanks);
    }
    ends_.push_back(record_.size());
    if (c != ',') return true;
  }
}

// From the opening quote to behind the closing one.
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
  throw FileError(file_.name() + ":" + std::to_string(record_line_) + ": the line " + text);
}

void CsvReader::fail_at(std::size_t column, const char* text) const {
  throw FileError(file_.name() + ":" + std::to_string(record_line_) + ": column " +
                  in_quotes(columns_[column]) + ": " + in_quotes(field(column)) + " " + text);
}

}  // namespace ebb::detail
