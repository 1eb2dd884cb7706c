#include "ebb/core/files/zip.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <numeric>

namespace ebb::detail {

namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;
constexpr std::size_t kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr std::uint16_t kExtra64 = 1;                     // the extra field that has 64 bits
constexpr std::uint32_t kIn64 = 0xffffffff;               // "see there"
constexpr std::uint16_t kVersion64 = 45;                  // of the format
constexpr std::uint16_t kUtf8 = 1 << 11, kEncrypted = 1;  // flags
constexpr std::uint64_t kMostDirectoryBytes = 100'000'000;
constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

// CRC-32 of ISO 3309, eight bytes at a time (Kounavis & Berry, 2008).
constexpr auto kCrcTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < 8; ++t)
    for (std::size_t i = 0; i < 256; ++i)
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
  return tables;
}();

std::uint32_t crc_of(const void* bytes, std::size_t count, std::uint32_t crc) noexcept {
  const auto* at = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; count >= 8; count -= 8, at += 8) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 4; ++i)
      next ^= kCrcTables[7 - i][(crc >> 8 * i & 0xff) ^ at[i]] ^ kCrcTables[3 - i][at[4 + i]];
    crc = next;
  }
  for (; count > 0; --count) crc = crc >> 8 ^ kCrcTables[0][(crc & 0xff) ^ *at++];
  return ~crc;
}

// Little-endian numbers, one behind the other.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  // 0 where there are not so many bytes left: who reads has counted.
  template <std::unsigned_integral T>
  T take() noexcept {
    T value = 0;
    if (bytes_.size() < sizeof(T)) return value;
    for (std::size_t i = sizeof(T); i-- > 0;)
      value = static_cast<T>(std::uint64_t{value} << 8 | static_cast<unsigned char>(bytes_[i]));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::string_view take_text(std::size_t count) noexcept {
    const std::string_view text = bytes_.substr(0, count);
    bytes_.remove_prefix(text.size());
    return text;
  }
  std::size_t left() const noexcept { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

template <std::unsigned_integral T>
void put(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i & 0xff);
}

std::string read_text(const InputFile& file, std::uint64_t at, std::size_t bytes) {
  std::string text(bytes, '\0');
  file.read(at, text.data(), bytes);
  return text;
}

[[noreturn]] void fail_damaged(const InputFile& file, const std::string& why) {
  file.fail("is no ZIP archive, or damaged: " + why);
}

struct Directory {
  std::uint64_t begin = 0, bytes = 0, entries = 0;
};

// The record at the file's end, which a comment may follow.
Directory find_directory(const InputFile& file) {
  constexpr std::size_t kLongestComment = 0xffff;
  const auto tail_bytes =
      static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), kEndBytes + kLongestComment));
  const std::uint64_t tail_at = file.size() - tail_bytes;
  const std::string tail = read_text(file, tail_at, tail_bytes);
  std::string signature;
  put(signature, kEnd);
  std::size_t found = tail.rfind(signature);
  const auto fits = [&](std::size_t at) {  // the comment ends where the file does
    if (tail.size() - at < kEndBytes) return false;
    Reader comment(std::string_view(tail).substr(at + kEndBytes - 2));
    return comment.take<std::uint16_t>() == tail.size() - at - kEndBytes;
  };
  while (found != tail.npos && !fits(found))
    found = found == 0 ? tail.npos : tail.rfind(signature, found - 1);
  if (found == tail.npos) fail_damaged(file, "it has no directory at its end");

  std::uint64_t end = tail_at + found;
  Reader record(std::string_view(tail).substr(found + 4));
  const auto disk = record.take<std::uint16_t>();
  record.take<std::uint16_t>();  // the disk of the directory
  record.take<std::uint16_t>();  // entries on this disk
  Directory directory;
  directory.entries = record.take<std::uint16_t>();
  directory.bytes = record.take<std::uint32_t>();
  directory.begin = record.take<std::uint32_t>();
  if (disk != 0 && disk != 0xffff) file.fail("is a part of a split archive");

  if (end >= kLocator64Bytes) {
    const std::string locator = read_text(file, end - kLocator64Bytes, kLocator64Bytes);
    Reader fields(locator);
    if (fields.take<std::uint32_t>() == kLocator64) {
      fields.take<std::uint32_t>();  // its disk
      const auto at = fields.take<std::uint64_t>();
      end -= kLocator64Bytes;
      if (at > end || end - at < kEnd64Bytes)
        fail_damaged(file, "its directory's end is not there");
      const std::string wide = read_text(file, at, kEnd64Bytes);
      Reader record64(wide);
      if (record64.take<std::uint32_t>() != kEnd64)
        fail_damaged(file, "its directory's end is not there");
      record64.take_text(28);  // its size, versions, disks, entries on this disk
      directory.entries = record64.take<std::uint64_t>();
      directory.bytes = record64.take<std::uint64_t>();
      directory.begin = record64.take<std::uint64_t>();
      end = at;
    }
  }
  if (directory.begin > end || directory.bytes != end - directory.begin)
    fail_damaged(file, "its directory does not end where its end begins");
  if (directory.bytes > kMostDirectoryBytes)
    fail_damaged(file, "its directory would have " + std::to_string(directory.bytes) + " bytes");
  return directory;
}

// An entry as the directory has it, without the place of its bytes: `begin` is that of its header.
ZipEntry read_entry(const InputFile& file, Reader& records) {
  if (records.left() < kCentralBytes || records.take<std::uint32_t>() != kCentral)
    fail_damaged(file, "its directory ends early");
  records.take<std::uint32_t>();  // versions
  const auto flags = records.take<std::uint16_t>();
  const auto method = records.take<std::uint16_t>();
  records.take<std::uint32_t>();  // time
  ZipEntry entry;
  entry.crc = records.take<std::uint32_t>();
  std::uint64_t packed = records.take<std::uint32_t>(), bytes = records.take<std::uint32_t>();
  const auto name_bytes = records.take<std::uint16_t>();
  const auto extra_bytes = records.take<std::uint16_t>();
  const auto comment_bytes = records.take<std::uint16_t>();
  records.take_text(8);  // disk, attributes
  entry.begin = records.take<std::uint32_t>();
  if (records.left() < std::size_t{name_bytes} + extra_bytes + comment_bytes)
    fail_damaged(file, "its directory ends early");
  entry.name = records.take_text(name_bytes);
  Reader extra(records.take_text(extra_bytes));
  records.take_text(comment_bytes);
  while (extra.left() >= 4) {
    const auto kind = extra.take<std::uint16_t>();
    const auto count = extra.take<std::uint16_t>();
    if (count > extra.left()) fail_damaged(file, in_quotes(entry.name) + " has a torn extra field");
    Reader field(extra.take_text(count));
    if (kind != kExtra64) continue;
    for (std::uint64_t* value : {&bytes, &packed, &entry.begin}) {
      if (*value != kIn64) continue;
      if (field.left() < 8) fail_damaged(file, in_quotes(entry.name) + " has no size");
      *value = field.take<std::uint64_t>();
    }
  }
  if (flags & kEncrypted) file.fail(in_quotes(entry.name) + " is encrypted");
  if (method != 0)
    file.fail(in_quotes(entry.name) +
              " is compressed, which ebb does not read; save it with np.savez in place of "
              "np.savez_compressed");
  if (packed != bytes) fail_damaged(file, in_quotes(entry.name) + " has two sizes");
  entry.end = bytes;
  return entry;
}

// Makes [begin, end) that of the entry's bytes.
void find_bytes(const InputFile& file, std::uint64_t least, std::uint64_t most, ZipEntry& entry) {
  const std::string name = in_quotes(entry.name);
  const std::uint64_t bytes = entry.end;
  if (entry.begin < least) fail_damaged(file, name + " begins inside the entry before it");
  if (entry.begin > most || most - entry.begin < kLocalBytes)
    fail_damaged(file, name + " begins behind the entries");
  const std::string header = read_text(file, entry.begin, kLocalBytes);
  Reader fields(header);
  if (fields.take<std::uint32_t>() != kLocal)
    fail_damaged(file, name + " is not where it should be");
  fields.take_text(22);
  const auto name_bytes = fields.take<std::uint16_t>();
  const std::uint64_t before = kLocalBytes + name_bytes + fields.take<std::uint16_t>();
  if (most - entry.begin < before || most - entry.begin - before < bytes)
    fail_damaged(file, name + " ends behind the entries");
  if (read_text(file, entry.begin + kLocalBytes, name_bytes) != entry.name)
    fail_damaged(file, name + " has another name in its own header");
  entry.begin += before;
  entry.end = entry.begin + bytes;
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const InputFile& file) {
  const Directory directory = find_directory(file);
  const std::string bytes =
      read_text(file, directory.begin, static_cast<std::size_t>(directory.bytes));
  Reader records(bytes);
  std::vector<ZipEntry> entries;
  while (records.left() > 0) entries.push_back(read_entry(file, records));
  if (entries.size() != directory.entries)
    fail_damaged(file, "its directory has " + std::to_string(entries.size()) + " entries, not " +
                           std::to_string(directory.entries));
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return entries[a].begin < entries[b].begin;
  });
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    find_bytes(file, end, directory.begin, entries[i]);
    end = entries[i].end;
  }
  return entries;
}

void check_zip_entry(const InputFile& file, const ZipEntry& entry) {
  std::vector<char> chunk(
      static_cast<std::size_t>(std::min<std::uint64_t>(entry.end - entry.begin, kChunkBytes)));
  std::uint32_t crc = 0;
  for (std::uint64_t at = entry.begin; at < entry.end;) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(entry.end - at, kChunkBytes));
    file.read(at, chunk.data(), count);
    crc = crc_of(chunk.data(), count, crc);
    at += count;
  }
  if (crc != entry.crc)
    file.fail(in_quotes(entry.name) + " is damaged: its bytes do not have its checksum");
}

void ZipWriter::add(std::string_view name, std::initializer_list<Part> parts) {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
  for (const Part& part : parts) {
    bytes += part.count;
    crc = crc_of(part.bytes, part.count, crc);
  }
  const bool is_ascii = std::all_of(name.begin(), name.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  // What both headers have of an entry: flags to the length of the name.
  const auto put_common = [&](std::string& to) {
    put(to, is_ascii ? std::uint16_t{0} : kUtf8);
    put(to, std::uint16_t{0});   // stored
    put(to, std::uint16_t{0});   // midnight
    put(to, std::uint16_t{33});  // of 1980-01-01
    put(to, crc);
    put(to, kIn64);
    put(to, kIn64);
    put(to, static_cast<std::uint16_t>(name.size()));
  };
  const auto put_extra = [&](std::string& to, std::initializer_list<std::uint64_t> values) {
    put(to, kExtra64);
    put(to, static_cast<std::uint16_t>(8 * values.size()));
    for (const std::uint64_t value : values) put(to, value);
  };

  std::string local;
  put(local, kLocal);
  put(local, kVersion64);
  put_common(local);
  put(local, std::uint16_t{20});  // of the extra field
  local += name;
  put_extra(local, {bytes, bytes});
  file_.write(local.data(), local.size());
  for (const Part& part : parts) file_.write(part.bytes, part.count);

  put(directory_, kCentral);
  put(directory_, kVersion64);  // made by
  put(directory_, kVersion64);  // needed
  put_common(directory_);
  put(directory_, std::uint16_t{28});  // of the extra field
  put(directory_, std::uint16_t{0});   // comment
  put(directory_, std::uint16_t{0});   // disk
  put(directory_, std::uint16_t{0});   // attributes
  put(directory_, std::uint32_t{0});
  put(directory_, kIn64);
  directory_ += name;
  put_extra(directory_, {bytes, bytes, at_});
  at_ += local.size() + bytes;
  ++entries_;
}

void ZipWriter::commit() {
  std::string end;
  const std::uint64_t directory_bytes = directory_.size();
  put(end, kEnd64);
  put(end, std::uint64_t{kEnd64Bytes - 12});
  put(end, kVersion64);
  put(end, kVersion64);
  put(end, std::uint64_t{0});  // disks
  put(end, entries_);
  put(end, entries_);
  put(end, directory_bytes);
  put(end, at_);
  put(end, kLocator64);
  put(end, std::uint32_t{0});
  put(end, at_ + directory_bytes);
  put(end, std::uint32_t{1});  // disks in all
  put(end, kEnd);
  put(end, std::uint32_t{0});
  put(end, std::uint16_t{0xffff});
  put(end, std::uint16_t{0xffff});
  put(end, kIn64);
  put(end, kIn64);
  put(end, std::uint16_t{0});
  file_.write(directory_.data(), directory_.size());
  file_.write(end.data(), end.size());
  file_.commit();
}

}  // namespace ebb::detail
