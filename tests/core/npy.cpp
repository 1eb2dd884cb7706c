#include "ebb/core/files/npy.h"

#include <numeric>
#include <random>

#include "ebb/core/base/error.h"
#include "ebb/core/base/half.h"
#include "ebb/core/data/tensor_files.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/session.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/line.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;
using namespace std::string_literals;

std::string by_numpy(const std::string& name) {
  return source_folder() + "/tests/core/numpy/" + name;
}

Doubles ramp(std::size_t count) {
  Doubles values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Returns an .npy file with this header, which is padded as NumPy pads it, and so many bytes.
std::string with_header(const std::string& header, std::size_t value_bytes) {
  const auto length = static_cast<char>(header.size());
  return "\x93NUMPY\x01" + std::string(1, '\0') + length + std::string(1, '\0') + header +
         std::string(value_bytes, 'v');
}

Tensor random_tensor(std::mt19937& random) {
  Shape shape;
  for (auto rank = random() % (kMaxRank + 1); rank > 0; --rank)
    shape.push_back(static_cast<std::int64_t>(random() % 4));
  constexpr DType dtypes[] = {DType::f32, DType::f64, DType::f16,
                              DType::i32, DType::i64, DType::u8};
  const Tensor tensor = Tensor::zeros(shape, dtypes[random() % std::size(dtypes)]);
  std::string bytes(tensor.bytes(), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  tensor.impl()->storage->copy_in(0, bytes.data(), bytes.size());
  return tensor;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && bytes_of(a) == bytes_of(b);
}

}  // namespace

TEST_CASE("without libzip an .npz is an error that names it") {
  if (npz::is_supported()) return;
  for (const auto& use : {std::function<void()>([] { load_npz(by_numpy("stored.npz")); }),
                          std::function<void()>([] { save_npz("a.npz", {}); })}) {
    CHECK_ERROR(use(), Error, ".npz: this ebb was built without libzip");
    CHECK_ERROR(use(), Error, "apt-get install libzip-dev");
    CHECK_ERROR(use(), Error, "npy.cpp:");
  }
}

TEST_CASE("what NumPy has saved is read: every dtype, both orders, all versions of the format") {
  for (const char* name : {"c_order.npy", "version2.npy", "version3.npy"})
    CHECK(load_npy(by_numpy(name)).to_vector<double>() == ramp(24));
  const Tensor fortran = load_npy(by_numpy("fortran.npy"));
  CHECK(fortran.shape() == Shape{2, 3, 4});
  CHECK(fortran.item<float>({1, 2, 3}) == 23);
  CHECK(fortran.item<float>({0, 1, 2}) == 6);
  CHECK(load_npy(by_numpy("fortran_bytes.npy")).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5});
  if (!npz::is_supported()) return;
  CHECK(load_npz(by_numpy("compressed.npz")).at("a").to_vector<double>() == ramp(24));
  const TensorsByName arrays = load_npz(by_numpy("stored.npz"));
  CHECK(arrays.size() == 12);
  CHECK(arrays.at("f4").shape() == Shape{2, 3});
  CHECK(arrays.at("f4").to_vector<float>() == std::vector<float>{0.1f, 2, 3, 4, 5, 6});
  CHECK(arrays.at("f8").to_vector<double>() == Doubles{0.1, -2.5});
  CHECK(static_cast<float>(arrays.at("f2").to_vector<Float16>()[1]) == -0.25f);
  CHECK(arrays.at("i4").to_vector<std::int32_t>() == std::vector<std::int32_t>{-7, 7});
  CHECK(arrays.at("i8").to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{std::int64_t{1} << 40, -1});
  CHECK(arrays.at("u1").to_vector<std::uint8_t>() == std::vector<std::uint8_t>{0, 128, 255});
  CHECK(arrays.at("bool").dtype() == DType::boolean);
  CHECK(arrays.at("bool").to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 0});
  CHECK(arrays.at("scalar").shape() == Shape{});
  CHECK(arrays.at("scalar").item<float>() == 2.5f);
  CHECK(arrays.at("empty").shape() == Shape{0, 4});
  CHECK(arrays.at("layer.0/größe").item<std::int32_t>() == 3);
  for (const char* name : {"c_order", "fortran"}) {
    CHECK(arrays.at(name).shape() == Shape{2, 3, 4});
    CHECK(arrays.at(name).to_vector<double>() == ramp(24));
  }
}

TEST_CASE("what ebb does not read of NumPy's is refused with the way to save it") {
  CHECK_ERROR(load_npy(by_numpy("big_endian.npy")), FileError,
              "has the dtype '>f8', which ebb does not read: it is big-endian; save it as");
  CHECK_ERROR(load_npy(by_numpy("complex.npy")), FileError, "has the dtype '<c8'");
  CHECK_ERROR(load_npy(by_numpy("text.npy")), FileError, "has the dtype '<U2'");
  CHECK_ERROR(load_npy(by_numpy("objects.npy")), FileError, "has the dtype '|O'");
  CHECK_ERROR(load_npy(by_numpy("records.npy")), FileError, "is an array of records");
  CHECK_ERROR(load_npy(by_numpy("stored.npz")), FileError, "does not begin with \\x93NUMPY");
  if (!npz::is_supported()) return;
  CHECK_ERROR(load_npz(by_numpy("c_order.npy")), FileError, "is no ZIP archive");
  CHECK_ERROR(load_npz(source_folder()), FileError, "is a directory, not a file");
  CHECK_ERROR(npz::File(by_numpy("stored.npz")).read("none", nullptr), FileError,
              "has no array 'none'");
}

TEST_CASE("what ebb saves is byte for byte what NumPy saves") {
  const TemporaryFolder folder;
  save_npy(folder.path("a.npy"), load_npy(by_numpy("c_order.npy")));
  CHECK(contents_of(folder.path("a.npy")) == contents_of(by_numpy("c_order.npy")));
}

TEST_CASE("tensors of any shape come back from .npy, .npz and safetensors files as they were") {
  if (!npz::is_supported()) return;
  const TemporaryFolder folder;
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    TensorsByName tensors;
    for (unsigned i = 0; i < random() % 5; ++i)
      tensors.emplace("w." + std::to_string(i) + "\xc3\xa9", random_tensor(random));
    save_npz(folder.path("a.npz"), tensors);
    save_safetensors(folder.path("a.safetensors"), tensors);
    for (const TensorsByName& back :
         {load_npz(folder.path("a.npz")), load_safetensors(folder.path("a.safetensors"))}) {
      REQUIRE(back.size() == tensors.size());
      for (const auto& [name, tensor] : tensors) REQUIRE(same(back.at(name), tensor));
    }
    const Tensor one = random_tensor(random);
    save_npy(folder.path("a.npy"), one);
    REQUIRE(same(load_npy(folder.path("a.npy")), one));
  }
  CHECK(folder.count() == 3);
}

TEST_CASE("bytes of booleans that are neither 0 nor 1 are true, whatever the file") {
  if (!npz::is_supported()) return;
  const TemporaryFolder folder;
  const std::string npy = folder.path("a.npy"), npz = folder.path("a.npz"),
                    safe = folder.path("a.safetensors");
  const unsigned char bytes[] = {2, 1, 0, 255};
  const std::vector<safetensors::View> views = {{"flags", {DType::boolean, {2, 2}}, bytes}};
  npy::write(npy, views[0].spec, bytes);
  npz::write(npz, views);
  safetensors::write(safe, views);
  const std::string by_columns = folder.file(
      "columns.npy",
      with_header("{'descr': '|b1', 'fortran_order': True, 'shape': (2, 2)}", 0) + "\2\0\1\xff"s);
  const Parameters parameters(Device::cpu());
  parameters.state("flags", {2, 2}, initializers::zeros(), DType::boolean);
  parameters.load(safe);
  for (const Tensor& loaded : {load_npy(npy), load_npy(by_columns), load_npz(npz).at("flags"),
                               load_safetensors(safe).at("flags"), parameters["flags"]})
    CHECK(bytes_of(loaded) == bytes_of(Tensor::from(std::vector<bool>{true, true, false, true})));
}

TEST_CASE("arrays larger than what is read at once lose nothing, in either order") {
  const TemporaryFolder folder;
  const Tensor large = Tensor::from(ramp(300 * 101), {300, 101});
  if (npz::is_supported()) {
    save_npz(folder.path("large.npz"), {{"a", large}});
    CHECK(same(load_npz(folder.path("large.npz")).at("a"), large));
  }
  save_npy(folder.path("large.npy"), large);
  std::string text = contents_of(folder.path("large.npy"));
  // Declares the same bytes as the transposed array in Fortran order.
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("'fortran_order': False", "'fortran_order': True ");
  replace("(300, 101)", "(101, 300)");
  const Tensor turned = load_npy(folder.file("turned.npy", text));
  CHECK(turned.shape() == Shape{101, 300});
  CHECK(turned.item<double>({100, 299}) == 300 * 101 - 1);
  CHECK(turned.item<double>({7, 200}) == 200 * 101 + 7);
  CHECK(turned.item<double>({100, 0}) == 100);
}

TEST_CASE("an .npy header that is damaged is refused, and the message says where") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& header, std::size_t bytes, const std::string& why) {
    const std::string name = folder.file("bad.npy", with_header(header, bytes));
    INFO(header);
    CHECK_ERROR(load_npy(name), FileError, name + ": ");
    CHECK_ERROR(load_npy(name), FileError, why);
  };
  const auto dict = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
  };
  CHECK(load_npy(folder.file("good", with_header(dict("(2,)"), 8))).shape() == Shape{2});
  CHECK(load_npy(folder.file("good", with_header(dict("(2L, 1L)"), 8))).shape() == Shape{2, 1});
  refuses("", 0, "its header has its end where a '{' should be");
  refuses("{", 0, "has its end where a key should be");
  refuses("{'descr", 0, "where a key should be");
  refuses("{'descr' '<f4'}", 0, "where a ':' should be");
  refuses("{'descr': '<f4' 'shape': ()}", 0, "where a '}' should be");
  refuses("{'descr': '<f4', 'descr': '<f4'}", 0,
          "the key 'descr', which is unknown or there twice");
  refuses("{'order': 'C'}", 0, "the key 'order', which is unknown");
  refuses("{}", 0, "has no 'descr'");
  refuses("{'descr': '<f4'}", 0, "has no 'fortran_order'");
  refuses("{'descr': '<f4', 'fortran_order': True}", 0, "has no 'shape'");
  refuses("{'fortran_order': 0}", 0, "as its fortran_order");
  refuses("{'descr': 3}", 0, "where a dtype should be");
  refuses("{'descr': ''}", 0, "has the dtype ''");
  refuses(dict("()") + "x", 4, "has 'x' behind its dict");
  refuses(dict("3"), 4, "where a '(' should be");
  refuses(dict("(3"), 12, "in its shape");
  refuses(dict("(-1,)"), 0, "in its shape");
  refuses(dict("(1.5,)"), 0, "where a ')' should be");
  refuses(dict("(99999999999999999999,)"), 0, "in its shape");
  refuses(dict("(1, 1, 1, 1, 1, 1, 1)"), 4, "more than 6 dimensions");
  // Products that overflow, to 0 and behind a size of zero.
  refuses(dict("(4294967296, 4294967296)"), 0, "more elements than a tensor can have");
  refuses(dict("(4611686018427387904,)"), 0, "more elements than a tensor can have");
  refuses(dict("(0, 9223372036854775807, 9)"), 0, "more elements than a tensor can have");
  refuses(dict("(3,)"), 11, "is f32[3], which is 12 bytes, but has 11");
  refuses(dict("(3,)"), 13, "is f32[3], which is 12 bytes, but has 13");
  const auto bytes = [&](const std::string& text, const char* why) {
    CHECK_ERROR(load_npy(folder.file("bad.npy", text)), FileError, why);
  };
  bytes("", "it has 0 bytes");
  bytes("\x93NUMPY\x01", "it has 7 bytes");
  bytes(std::string("\x93NUMPY\x09\0\0\0", 10), "is of version 9 of NumPy's format");
  bytes(std::string("\x93NUMPY\x02\0\0\0", 10), "ends inside its header");
  bytes(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14), "would have 4294967295 bytes");
  CHECK_ERROR(load_npy(folder.path("none.npy")), FileError, "none.npy: cannot be opened");
}

TEST_CASE("archives and arrays with flipped, missing or added bytes load whole or not at all",
          "[host]") {
  const TemporaryFolder folder;
  std::mt19937 random(6);
  for (const char* source : {"stored.npz", "compressed.npz", "fortran.npy"}) {
    const bool is_archive = std::string(source).ends_with("npz");
    if (is_archive && !npz::is_supported()) continue;
    const std::string good = contents_of(by_numpy(source));
    const auto load = [&](const std::string& name) {
      if (is_archive)
        load_npz(name);
      else
        load_npy(name);
    };
    int refused = 0;
    for (int round = 0; round < 500; ++round) {
      const std::string name = folder.file("bad", damaged(good, random));
      try {
        load(name);
      } catch (const FileError& error) {
        ++refused;
        REQUIRE(std::string(error.what()).starts_with(name + ": "));
      }
    }
    CHECK(refused > 325);  // every cut or longer file, and most flipped bytes of archives
  }
}

TEST_CASE("an archive that is damaged, or that is no plain one, is refused with its file") {
  if (!npz::is_supported()) return;
  const TemporaryFolder folder;
  save_npz(folder.path("a.npz"), {{"v", Tensor::from({3.f})}, {"w", Tensor::from({1.f, 2.f})}});
  const std::string good = contents_of(folder.path("a.npz"));
  const auto refuses = [&](const std::string& text, const std::string& why) {
    const std::string name = folder.file("b.npz", text);
    INFO(why);
    CHECK_ERROR(load_npz(name), FileError, name + ": " + why);
  };
  const float two = 2;
  std::string flipped = good;
  flipped[good.find(std::string(reinterpret_cast<const char*>(&two), sizeof two)) + 1] ^= 1;
  refuses(flipped, "'w.npy' is damaged: ");
  refuses(replaced(good, "v.npy", "v.txt"), "has 'v.txt', which is no .npy file");
  refuses(replaced(good, "w.npy", "v.npy"), "is no ZIP archive, or damaged: ");  // twice
  refuses(good.substr(0, good.size() - 5), "is no ZIP archive, or damaged: ");
  refuses("", "is no ZIP archive, or damaged: ");

  // Changes flags, method and packed bytes of the first entry, in its own header and in the
  // directory.
  const std::size_t central = good.find("PK\1\2");
  REQUIRE(central != good.npos);
  const auto with = [&](std::size_t local_at, const std::string& bytes) {
    std::string text = good;
    text.replace(local_at, bytes.size(), bytes);
    return text.replace(central + local_at + 2, bytes.size(), bytes);
  };
  refuses(with(6, std::string(1, 1)), "'v.npy' is encrypted");
  refuses(with(8, std::string(1, 12)), "'v.npy' is compressed by ZIP's method 12; ebb reads");
  // Claims more bytes than one packed byte can hold: nothing of that size is allocated.
  refuses(with(8, std::string("\x08\0", 2) + good.substr(10, 8) + std::string("\x01\0\0\0", 4) +
                      std::string(3, '\x7f') + '\0'),
          "'v.npy' is damaged: 8355711 bytes cannot come of 1");
}

TEST_CASE("an archive may have a comment, names beyond ASCII, and nothing in it") {
  if (!npz::is_supported()) return;
  const TemporaryFolder folder;
  std::string text = contents_of(by_numpy("stored.npz"));
  const std::string comment = "PK\5\6 and so on";
  text[text.size() - 2] = static_cast<char>(comment.size());
  CHECK(load_npz(folder.file("a.npz", text + comment)).size() == 12);
  save_npz(folder.path("a.npz"), {});
  CHECK(load_npz(folder.path("a.npz")).empty());
  for (const std::string name : {"w", "gr\xc3\xb6\xc3\x9f\x65"}) {
    save_npz(folder.path("a.npz"), {{name, Tensor::from({1.f})}});
    CHECK(load_npz(folder.path("a.npz")).contains(name));
    const bool is_marked = (contents_of(folder.path("a.npz"))[7] & 8) != 0;  // as UTF-8
    CHECK(is_marked == (name != "w"));
  }
}

TEST_CASE("what cannot be saved as an .npz is refused, and an older file stays") {
  if (!npz::is_supported()) return;
  const TemporaryFolder folder;
  const std::string name = folder.file("a.npz", "older");
  const float value = 1;
  const auto refuses = [&](const std::vector<std::string>& names, const char* why) {
    std::vector<npz::View> views;
    for (const std::string& one : names) views.push_back({one, {DType::f32, {}}, &value});
    CHECK_ERROR(npz::write(name, views), Error, why);
  };
  refuses({"w", "w"}, "the name 'w' is given twice");
  refuses({""}, "the name '' is empty");
  refuses({std::string(65535, 'w')}, "is too long");
  refuses({std::string("w\0", 2)}, "the name 'w\\x00' has a byte of zero");
  refuses({"w", "\xff"}, "is not UTF-8");
  CHECK_ERROR(save_npz("/dev/full", {{"w", Tensor::zeros({1})}}), FileError,
              "/dev/full: cannot be written: it is there and not a regular file");
  CHECK(contents_of(name) == "older");
  CHECK(folder.count() == 1);
}

TEST_CASE("what has no values or no place in a NumPy file is refused by the line that asked") {
  const TemporaryFolder folder;
  const std::string name = folder.path("a.npy");
  CHECK_ERROR_HERE(save_npy(name, Tensor()), Error, "[save_npy] the tensor has no values");
  CHECK_ERROR(save_npy(name, Tensor::zeros({1}, DType::bf16)), Error,
              "[npy] NumPy has no bf16; cast it to f32");
  CHECK_ERROR(save_npz(name, {{"w", Tensor()}}), Error, "[save_npz] 'w' has no values");
  Graph graph;
  CHECK_ERROR(save_npy(name, graph.placeholder("x", DType::f32, {1})), Error, "symbolic");
  const Device twin = Device::simulated("cpu", std::size_t{1} << 30);
  CHECK_ERROR(save_npy(name, Tensor::zeros({1}, DType::f32, twin)), SimulatedRead, "simulated");
  CHECK(load_npy(by_numpy("c_order.npy"), twin).shape() == Shape{2, 3, 4});
  CHECK_ERROR(load_npy(folder.path("none")), FileError, line(__LINE__));
  CHECK_ERROR(save_npy(folder.path("no/a"), Tensor::zeros({1})), FileError, line(__LINE__));
  CHECK(folder.count() == 0);
}

}  // namespace ebb::tests
