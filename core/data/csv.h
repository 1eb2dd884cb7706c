#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/files/input_file.h"

namespace ebb::detail {

// Reads a CSV with a header, one record at a time (RFC 4180: fields in double quotes may hold
// commas, line ends and doubled quotes). Lines end in LF or CRLF, empty ones are skipped, spaces
// around fields without quotes are dropped. Everything throws FileError "file:line: ...".
class CsvReader {
 public:
  // Opens the file and reads its header. Throws also where there is none.
  explicit CsvReader(const std::string& file);

  const std::vector<std::string>& columns() const noexcept { return columns_; }
  // The index of the column of this name. Throws, naming what there is, for none or several.
  std::size_t column(std::string_view name) const;

  // The next record; false at the end. Throws for one with more or fewer fields than the header, or
  // for quotes that do not end or are followed by something.
  bool next();
  std::string_view field(std::size_t column) const;
  // A field as a finite number, also one that is finite as an f32. Throws.
  double number(std::size_t column) const;
  float number_f32(std::size_t column) const;
  // A field as a whole number that an i32 holds ("3", "3.0"). Throws.
  std::int32_t integer_i32(std::size_t column) const;

 private:
  // A byte of the file, or kEnd.
  int get();
  int peek();
  bool read_record();
  void read_quoted();
  [[noreturn]] void fail(const std::string& text) const;
  [[noreturn]] void fail_at(std::size_t column, const char* text) const;

  static constexpr int kEnd = -1;

  InputFile file_;
  std::vector<std::string> columns_;
  std::vector<char> buffer_;  // what has been read ahead
  std::size_t buffer_at_ = 0;
  std::uint64_t file_at_ = 0;      // where in the file the buffer ends
  std::uint64_t line_ = 1;         // where the next byte is
  std::uint64_t record_line_ = 1;  // where the record begins
  std::string record_;             // its fields, one behind the other
  std::vector<std::size_t> ends_;  // where in record_ each field ends
};

}  // namespace ebb::detail
