#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ebb/core/base/call_site.h"
#include "ebb/core/data/csv_options.h"
#include "ebb/core/files/input_file.h"

namespace ebb {

// The names of a CSV's columns. Throws FileError.
std::vector<std::string> csv_columns(const std::string& file, const CsvFormat& format = {},
                                     CallSite site = CallSite::here());

namespace detail {

// Without the spaces and tabs around it.
std::string_view without_blanks(std::string_view text);

// Reads a CSV one record at a time (RFC 4180: fields in double quotes may hold separators, line
// ends and doubled quotes). Lines end in LF or CRLF, empty ones are skipped, spaces around fields
// without quotes are dropped, as is a byte order mark. Everything throws FileError "file:line:
// ...", with the user's line where there is a scope that has it.
class CsvReader {
 public:
  // Opens the file and reads its header. Throws also where there is nothing in it.
  explicit CsvReader(const std::string& file, const CsvFormat& format = {});

  const std::vector<std::string>& columns() const noexcept { return columns_; }
  // The index of the column of this name. Throws, naming what there is, for none or several.
  std::size_t column(std::string_view name) const;
  // Text that follows "is not a number" in a message: what the caller can do about it.
  void set_hint(std::string hint) { hint_ = std::move(hint); }

  // The next record; false at the end. Throws for one with more or fewer fields than the first, or
  // for quotes that do not end or are followed by something.
  bool next();
  // As it is there: one in quotes with its spaces.
  std::string_view field(std::size_t column) const;
  // A field as a finite number, rounded once. Throws.
  double number(std::size_t column) const;
  float number_f32(std::size_t column) const;
  // A field as a whole number that an i32 holds ("3", "3.0"), or an i64. Throws.
  std::int32_t integer_i32(std::size_t column) const;
  std::int64_t integer_i64(std::size_t column) const;
  // Throws about this field of the record: "file:line: column 'name': 'field' text".
  [[noreturn]] void fail_at(std::size_t column, const std::string& text) const;

 private:
  // A byte of the file, or kEnd.
  int get();
  int peek();
  char guess_separator();
  void skip_line();
  bool read_record();
  void read_plain();
  void read_quoted();
  [[noreturn]] void fail(const std::string& text) const;
  template <class T>
  bool read_number(std::size_t column, T& value) const;

  static constexpr int kEnd = -1;

  InputFile file_;
  const bool has_header_;
  char separator_ = ',';
  std::optional<char> comment_;
  std::vector<std::string> columns_;
  std::string hint_;
  std::vector<char> buffer_;  // what has been read ahead
  std::size_t buffer_at_ = 0;
  std::uint64_t file_at_ = 0;      // where in the file the buffer ends
  std::uint64_t line_ = 1;         // where the next byte is
  std::uint64_t record_line_ = 1;  // where the record begins
  std::string record_;             // its fields, one behind the other
  std::vector<std::size_t> ends_;  // where in record_ each field ends
  bool has_first_ = false;         // the record is the first, and next() has not given it
};

}  // namespace detail
}  // namespace ebb
