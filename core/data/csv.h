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

// Column names of a CSV. Throws FileError.
std::vector<std::string> csv_columns(const std::string& file, const CsvFormat& format = {},
                                     CallSite site = CallSite::here());

namespace detail {

// Strips spaces and tabs at both ends.
std::string_view without_blanks(std::string_view text);

// Reads a CSV one record at a time (RFC 4180: fields in double quotes may hold separators, line
// ends and doubled quotes). Lines end in LF or CRLF. Skips empty lines and a byte order mark, and
// strips unquoted fields. Errors are FileError "file:line: ...", with the user's line if a call
// scope knows it.
class CsvReader {
 public:
  // Opens the file and reads its header. Throws also for an empty file.
  explicit CsvReader(const std::string& file, const CsvFormat& format = {});

  const std::vector<std::string>& columns() const noexcept { return columns_; }
  // Index of the column of this name. If there is none or several, throws and names the columns.
  std::size_t column(std::string_view name) const;
  // Text that follows "is not a number" in a message: what the caller can do about it.
  void set_hint(std::string hint) { hint_ = std::move(hint); }

  // Reads the next record; false at the end. Throws if it has more or fewer fields than the first,
  // or if quotes do not end or are followed by text.
  bool next();
  // A field as written; a quoted one keeps its spaces.
  std::string_view field(std::size_t column) const;
  // A field as a finite number, rounded once: below the least number, to 0. Throws.
  double number(std::size_t column) const;
  float number_f32(std::size_t column) const;
  // A field as a whole number that an i32 holds ("3", "3.0"), or an i64. Throws.
  std::int32_t integer_i32(std::size_t column) const;
  std::int64_t integer_i64(std::size_t column) const;
  // Throws about this field of the record: "file:line: column 'name': 'field' text".
  [[noreturn]] void fail_at(std::size_t column, const std::string& text) const;

 private:
  // The next byte of the file, or kEnd.
  int get();
  int peek();
  char guess_separator();
  bool read_record();
  void read_plain();
  void read_quoted();
  [[noreturn]] void fail(const std::string& text) const;
  template <class T>
  T read_number(std::size_t column, const char* type) const;

  static constexpr int kEnd = -1;

  InputFile file_;
  const bool has_header_;
  char separator_ = ',';
  std::optional<char> comment_;
  std::vector<std::string> columns_;
  std::string hint_;
  std::vector<char> buffer_;  // bytes read ahead
  std::size_t buffer_at_ = 0;
  std::uint64_t file_at_ = 0;      // position in the file of the buffer's end
  std::uint64_t line_ = 1;         // line of the next byte
  std::uint64_t record_line_ = 1;  // line on which the record begins
  std::string record_;             // its fields, concatenated
  std::vector<std::size_t> ends_;  // end of each field in record_
  bool has_first_ = false;         // the first record has been read, but next() has not returned it
};

}  // namespace detail
}  // namespace ebb
