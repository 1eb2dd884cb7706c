#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include <stdlib.h>

namespace ebb::tests {

// A folder for a test's files, removed at the end of its scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ebb-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder: " + name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string path(std::string_view name) const { return (path_ / name).string(); }
  // Writes a file, makes the folders that it lies in, and returns its path.
  std::string file(std::string_view name, std::string_view contents) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path(name), std::ios::binary) << contents;
    return path(name);
  }
  // Number of files in the folder.
  std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(path_), {});
  }

 private:
  std::filesystem::path path_;
};

// The text with a few bits flipped, cut short, or with bytes between.
inline std::string damaged(std::string text, std::mt19937& random) {
  switch (random() % 3) {
    case 0:
      for (auto flips = 1 + random() % 4; flips > 0; --flips)
        text[random() % text.size()] ^= static_cast<char>(1 << random() % 8);
      break;
    case 1:
      text.resize(random() % text.size());
      break;
    default:
      text.insert(random() % text.size(), 1 + random() % 9, static_cast<char>(random()));
  }
  return text;
}

inline std::string contents_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace ebb::tests
