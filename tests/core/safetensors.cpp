#include "ebb/core/files/safetensors.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <cstring>
#include <random>

#include "ebb/core/base/error.h"
#include "ebb/core/files/output_file.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/source_folder.h"

namespace {

using namespace ebb;
using ebb::tests::contents_of;
using ebb::tests::TemporaryFolder;
namespace st = ebb::safetensors;

struct Sample {
  std::string name;
  Spec spec;
  std::string values;  // as bytes
};

// Returns tensors of all dtypes and ranks, empty ones among them.
std::vector<Sample> random_samples(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  std::vector<Sample> samples(static_cast<std::size_t>(below(9)));
  for (Sample& sample : samples) {
    sample.name = "layer." + std::to_string(&sample - samples.data()) + "/\"q\"\n\xc3\xa9";
    sample.spec.dtype = static_cast<DType>(below(8));
    for (int rank = below(kMaxRank + 1); rank > 0; --rank) sample.spec.shape.push_back(below(5));
    for (std::size_t i = 0; i < sample.spec.bytes(); ++i)
      sample.values +=
          static_cast<char>(sample.spec.dtype == DType::boolean ? random() % 2 : random());
  }
  return samples;
}

void write(const std::string& file, const std::vector<Sample>& samples,
           const st::Metadata& metadata = {}) {
  std::vector<st::View> views;
  for (const Sample& sample : samples)
    views.push_back({sample.name, sample.spec, sample.values.data()});
  st::write(file, views, metadata);
}

std::string read(const st::File& file, const st::File::Entry& entry) {
  std::string values(entry.spec.bytes(), '\0');
  file.read(entry.name, values.data());
  return values;
}

// The first 8 bytes of a file: its header's length.
std::string length_of(std::uint64_t header_bytes) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(header_bytes >> (8 * i) & 0xff);
  return text;
}

// A file with this header and `value_bytes` bytes of values.
std::string with_header(const std::string& header, std::size_t value_bytes) {
  return length_of(header.size()) + header + std::string(value_bytes, 'v');
}

}  // namespace

TEST_CASE("what safetensors writes it reads back, for random tensors of every dtype", "[host]") {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Sample> samples = random_samples(random);
    const st::Metadata metadata = {{"round", std::to_string(round)}, {"", "\xe2\x82\xac \\"}};
    const std::string name = folder.path("file");
    write(name, samples, metadata);
    const st::File file(name);
    REQUIRE(file.metadata() == metadata);
    REQUIRE(file.entries().size() == samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const st::File::Entry* entry = file.find(samples[i].name);
      REQUIRE(entry);
      REQUIRE(file.entries()[i].name == samples[i].name);
      REQUIRE(entry->spec == samples[i].spec);
      REQUIRE(read(file, *entry) == samples[i].values);
    }
    CHECK(file.find("missing") == nullptr);
  }
  CHECK(folder.count() == 1);
}

TEST_CASE("safetensors opens what the reference implementation wrote", "[host]") {
  // tests/core/make_reference.py wrote it.
  const st::File file(ebb::tests::source_folder() + "/tests/core/reference.safetensors");
  CHECK(file.metadata() == st::Metadata{{"made by", "safetensors"}});
  const auto check = [&](const char* name, DType dtype, const Shape& shape, const auto& values) {
    const st::File::Entry* entry = file.find(name);
    REQUIRE(entry);
    CHECK(entry->spec == Spec{dtype, shape});
    const std::string bytes = read(file, *entry);
    REQUIRE(bytes.size() == sizeof values);
    CHECK(std::memcmp(bytes.data(), &values, sizeof values) == 0);
  };
  check("f64", DType::f64, {2, 1}, std::array<double, 2>{0.1, -2.5});
  check("f32", DType::f32, {3}, std::array<float, 3>{1, 2, 3});
  check("f16", DType::f16, {1}, std::array<std::uint16_t, 1>{0x3e00});  // 1.5
  check("i64", DType::i64, {}, std::int64_t{1} << 40);
  check("i32", DType::i32, {2}, std::array<std::int32_t, 2>{-7, 7});
  check("u8", DType::u8, {3}, std::array<std::uint8_t, 3>{0, 128, 255});
  check("bool", DType::boolean, {2}, std::array<bool, 2>{true, false});
  REQUIRE(file.find("empty"));
  CHECK(file.find("empty")->spec == Spec{DType::f32, {0, 4}});
  CHECK(file.entries().size() == 8);
}

TEST_CASE("the values in a safetensors file are aligned to their own size", "[host]") {
  const TemporaryFolder folder;
  const std::string one(1, '\x11'), eight(8, '\x22'), four(4, '\x33');
  write(folder.path("file"), {{"a", {DType::u8, {1}}, one},
                              {"b", {DType::f64, {1}}, eight},
                              {"c", {DType::i32, {1}}, four}});
  const std::string text = contents_of(folder.path("file"));
  CHECK(text.find(eight) % 8 == 0);
  CHECK(text.find(four) % 4 == 0);
  CHECK(text.substr(text.size() - 13) == eight + four + one);
}

TEST_CASE("a safetensors file that contradicts itself is refused, and the message says where",
          "[host]") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& header, std::size_t value_bytes,
                           const std::string& why) {
    const std::string name = folder.file("bad", with_header(header, value_bytes));
    INFO(header.substr(0, 200));
    CHECK_ERROR(st::File(name), FileError, name);
    CHECK_ERROR(st::File(name), FileError, why);
  };
  const auto tensor = [](const std::string& rest) { return R"({"w":{)" + rest + "}}"; };
  const std::string f32 = R"("dtype":"F32",)";

  refuses("", 0, "no JSON object");
  refuses("[]", 0, "no JSON object");
  refuses(" {}", 0, "no JSON object");
  refuses(std::string("{}\0", 3), 0, "no JSON object");
  refuses("{", 0, "no JSON at byte");
  refuses("{} {}", 0, "no JSON at byte");
  refuses("{\"\xff\":1}", 0, "no JSON at byte");
  refuses(R"({"w":1})", 0, "'w' is the number 1, where an object should be");
  refuses(R"({"w":[[[[]]]]})", 0, "'w' is a list");
  refuses(R"({"__metadata__":{"k":1}})", 0, "the metadata have the number 1 under 'k'");
  refuses(R"({"__metadata__":{"k":{}}})", 0, "an object under 'k'");
  refuses(R"({"__metadata__":{"k":"1","k":"2"}})", 0, "key twice");
  refuses(tensor(""), 0, "'w' has no dtype");
  refuses(tensor(R"("dtype":"F32","data_offsets":[0,0])"), 0, "'w' has no shape");
  refuses(tensor(f32 + R"("shape":[0])"), 0, "'w' has no data_offsets");
  refuses(tensor(R"("dtype":"F8_E4M3")"), 0, "dtype 'F8_E4M3'");
  refuses(tensor(R"("dtype":3)"), 0, "the number 3 as its dtype");
  refuses(tensor(R"("dtype":["F32"])"), 0, "a list");
  refuses(tensor(R"("order":"C")"), 0, "unknown key 'order'");
  refuses(tensor(f32 + f32 + R"("shape":[])"), 0, "'dtype' twice");
  refuses(tensor(f32 + R"("shape":4)"), 0, "the number 4 as its shape");
  refuses(tensor(f32 + R"("shape":[-1])"), 0, "the number -1 in its shape");
  refuses(tensor(f32 + R"("shape":[1.5])"), 0, "'1.5' in its shape");
  refuses(tensor(f32 + R"("shape":[1e400])"), 0, "in its header");
  refuses(tensor(f32 + R"("shape":[18446744073709551616])"), 0, "in its shape");
  refuses(tensor(f32 + R"("shape":["1"])"), 0, "the text '1' in its shape");
  refuses(tensor(f32 + R"("shape":[1,1,1,1,1,1,1])"), 4, "more than 6 dimensions");
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[0])"), 4, "fewer than two data_offsets");
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[0,4,8])"), 4, "more than two data_offsets");
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[4,0])"), 4, "ends at 0, before it begins");
  refuses(tensor(f32 + R"("shape":[2],"data_offsets":[0,4])"), 4, "f32[2], which is 8 bytes");
  // Products that overflow, to 0 and behind a size of zero.
  refuses(tensor(f32 + R"("shape":[4611686018427387904],"data_offsets":[0,0])"), 0, "addressed");
  refuses(tensor(f32 + R"("shape":[4294967296,4294967296],"data_offsets":[0,0])"), 0, "addressed");
  refuses(tensor(f32 + R"("shape":[0,9223372036854775807,9],"data_offsets":[0,0])"), 0,
          "addressed");
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[0,4])"), 3, "ends at byte 4");
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[0,4])"), 5, "1 bytes behind its last");
  refuses(tensor(f32 + R"("shape":[1],"data_offsets":[4,8])"), 8, "behind a gap of 4");
  const std::string w = R"("w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  refuses("{" + w + "," + w + "}", 4, "name 'w' is there twice");
  refuses("{" + w + R"(,"v":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6, "inside");
}

TEST_CASE("a safetensors header may be padded by spaces and name nothing", "[host]") {
  const TemporaryFolder folder;
  CHECK(st::File(folder.file("a", with_header("{}     ", 0))).entries().empty());
  const std::string null_metadata = with_header(R"({"__metadata__":{}})", 0);
  CHECK(st::File(folder.file("b", null_metadata)).metadata().empty());
}

TEST_CASE("a header longer than the file or than the format allows is refused unread", "[host]") {
  const TemporaryFolder folder;
  CHECK_ERROR(st::File(folder.file("empty", "")), FileError, "it has 0 bytes");
  CHECK_ERROR(st::File(folder.file("short", "1234567")), FileError, "it has 7 bytes");
  CHECK_ERROR(st::File(folder.file("huge", std::string(16, '\xff'))), FileError,
              "its header would have 18446744073709551615 bytes");
  // Files of torch.save() begin like this, before version 1.6 and since.
  const std::string of_torch =
      "is a pickle that torch.save() wrote, no safetensors file; in Python";
  CHECK_ERROR(st::File(folder.file("old",
                                   "\x80\x02\x8a\nl\xfc\x9c"
                                   "F\xf9 j\xa8P\x19.")),
              FileError, of_torch);
  CHECK_ERROR(st::File(folder.file("new", "PK\3\4" + std::string(26, '\0') + "model/data.pkl")),
              FileError, of_torch);
  CHECK_ERROR(st::File(folder.file("zip", "PK\3\4" + std::string(26, '\0') + "a.npy")), FileError,
              "is no safetensors file, or damaged");
  // A header of one byte more than 100 MB, in a sparse file.
  const std::string sparse = folder.file("sparse", length_of(100'000'001));
  std::filesystem::resize_file(sparse, 200'000'000);
  CHECK_ERROR(st::File(sparse), FileError, "100000001 bytes");
}

TEST_CASE("what is no file is a FileError with the system's cause", "[host]") {
  const TemporaryFolder folder;
  CHECK_ERROR(st::File(folder.path("none")), FileError, "none: cannot be opened: No such file");
  CHECK_ERROR(st::File(folder.path("")), FileError, "is a directory");
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK_ERROR(st::File(folder.path("pipe")), FileError, "not a regular file");
  CHECK_ERROR(st::write(folder.path("no/file"), {}), FileError, "No such file");
  CHECK_ERROR(st::write(folder.path("pipe"), {}), FileError, "not a regular file");
}

TEST_CASE("a safetensors file with flipped, missing or added bytes loads whole or not at all",
          "[host]") {
  const TemporaryFolder folder;
  std::mt19937 random(2);
  std::string good;
  for (int round = 0; round < 400; ++round) {
    if (round % 50 == 0) {
      write(folder.path("good"), random_samples(random), {{"key", "value"}});
      good = contents_of(folder.path("good"));
    }
    const std::string text = tests::damaged(good, random);
    const std::string name = folder.file("bad", text);
    try {
      const st::File file(name);
      std::size_t bytes = 0;
      for (const st::File::Entry& entry : file.entries()) bytes += read(file, entry).size();
      // A file that loads has an entry for every byte of its values.
      std::uint64_t header = 0;
      for (int i = 8; i-- > 0;)
        header = header << 8 | static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
      REQUIRE(8 + header + bytes == text.size());
    } catch (const FileError& error) {
      REQUIRE(std::string(error.what()).starts_with(name + ": "));
    }
  }
}

TEST_CASE("a file cut short after it was opened is an error, not a crash", "[host]") {
  const TemporaryFolder folder;
  const std::string name = folder.path("file");
  write(name, {{"w", {DType::u8, {100'000}}, std::string(100'000, 'w')}});
  const st::File file(name);
  std::filesystem::resize_file(name, 50'000);
  std::string values(100'000, '\0');
  CHECK_ERROR(file.read("w", values.data()), FileError, "ends at byte 50000");
  CHECK_ERROR(file.read("v", values.data()), FileError, "has no tensor 'v'");
}

TEST_CASE("safetensors refuses to write what it could not read, and then writes nothing",
          "[host]") {
  const TemporaryFolder folder;
  const std::string name = folder.path("file");
  const float value = 1;
  const auto view = [&](const char* called) { return st::View{called, {}, &value}; };
  const auto refuses = [&](const std::vector<st::View>& views, const st::Metadata& metadata,
                           const char* why) {
    CHECK_ERROR(st::write(name, views, metadata), Error, why);
  };
  refuses({view("w"), view("w")}, {}, "'w' is given twice");
  refuses({view("__metadata__")}, {}, "reserved");
  refuses({view("\xff")}, {}, "not UTF-8");
  refuses({view("w")}, {{"key", "\xff"}}, "not UTF-8");
  refuses({{"w", {DType::f32, {kOpen, 2}}, &value}}, {}, "open shape [?, 2]");
  refuses({}, {{"key", std::string(100'000'001, 'x')}}, "more than a header holds");
  CHECK(folder.count() == 0);
}

TEST_CASE("a write that fails leaves the old file as it was and no other", "[host]") {
  const TemporaryFolder folder;
  const std::string name = folder.path("file");
  write(name, {{"w", {DType::u8, {3}}, "old"}});
  const std::string old = contents_of(name);
  // Writing stops in the middle, as on a full disk.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string why = ebb::tests::why_not_thrown<FileError>(
      [&] {
        write(name, {{"w", {DType::u8, {100'000}}, std::string(100'000, 'n')}});
      },
      "file: cannot be written: File too large");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(why == "");
  CHECK(contents_of(name) == old);
  CHECK(folder.count() == 1);
}

TEST_CASE("a link is written through: what it leads to is another file, and the link stays",
          "[host]") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directory(folder.path("far"));
  fs::create_symlink("far/file", folder.path("near"));  // far/file does not exist yet
  fs::create_symlink(folder.path("near"), folder.path("nearer"));
  for (const std::string values : {"first", "second"}) {
    ebb::detail::OutputFile file(folder.path("nearer"));
    file.write(values.data(), values.size());
    file.commit();
    CHECK(fs::is_symlink(folder.path("near")));
    CHECK(fs::is_symlink(folder.path("nearer")));
    CHECK(contents_of(folder.path("far/file")) == values);
  }
  CHECK(folder.count() == 3);
  fs::create_symlink("loop", folder.path("loop"));
  CHECK_ERROR(ebb::detail::OutputFile(folder.path("loop")), FileError,
              "cannot be written: Too many levels of symbolic links");
  CHECK(fs::is_symlink(folder.path("loop")));
}

TEST_CASE("two writers of one file at a time leave it whole, as the last to finish wrote it",
          "[host]") {
  const TemporaryFolder folder;
  const std::string name = folder.path("file");
  const std::string a(5000, 'a'), b(300, 'b');
  {
    ebb::detail::OutputFile first(name), second(name);
    first.write(a.data(), 2500);
    second.write(b.data(), 150);
    first.write(a.data(), 2500);
    CHECK_FALSE(std::filesystem::exists(name));  // neither writer has finished
    second.write(b.data(), 150);
    second.commit();
    CHECK(contents_of(name) == b);
    first.commit();
    CHECK(contents_of(name) == a);
  }
  {
    ebb::detail::OutputFile finished(name), given_up(name);
    given_up.write(a.data(), a.size());
    finished.write(b.data(), b.size());
    finished.commit();
  }
  CHECK(contents_of(name) == b);
  CHECK(folder.count() == 1);
}
