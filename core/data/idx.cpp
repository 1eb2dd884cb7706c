// Reads the IDX files of MNIST (http://yann.lecun.com/exdb/mnist/): two zeros, the type, the number
// of dimensions, the dimensions as big-endian 32-bit words, then the values.
#include <algorithm>
#include <array>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/data_set.h"
#include "ebb/core/data/host_values.h"
#include "ebb/core/files/input_file.h"

namespace ebb {

namespace {

constexpr unsigned char kBytes = 0x08;  // the type: u8
constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

class IdxFile {
 public:
  // Throws FileError unless u8 values in `rank` dimensions fill the file exactly.
  IdxFile(const std::string& name, std::size_t rank) : file_(name), dims_(rank) {
    std::array<unsigned char, 4> head{};
    if (file_.size() < head.size()) file_.fail("is no IDX file: it has fewer than 4 bytes");
    file_.read(0, head.data(), head.size());
    if (head[0] == 0x1f && head[1] == 0x8b) file_.fail("is compressed; unpack it with gunzip");
    if (head[0] != 0 || head[1] != 0) file_.fail("is no IDX file: it does not begin with zeros");
    if (head[2] != kBytes || head[3] != rank)
      file_.fail("has type " + std::to_string(head[2]) + " and " + std::to_string(head[3]) +
                 " dimensions, where type 8 (bytes) and " + std::to_string(rank) + " should be");

    values_at_ = head.size() + 4 * rank;
    if (file_.size() < values_at_) file_.fail("ends inside its dimensions");
    // Keep the product below the file's size, so that it cannot overflow.
    const std::uint64_t available = file_.size() - values_at_;
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      std::array<unsigned char, 4> word{};
      file_.read(head.size() + 4 * i, word.data(), word.size());
      for (const unsigned char byte : word) dims_[i] = dims_[i] << 8 | byte;
      if (dims_[i] == 0) file_.fail("has a dimension of size 0");
      if (dims_[i] > available / count)
        file_.fail("has " + std::to_string(available) +
                   " bytes of values, fewer than its dimensions call for");
      count *= dims_[i];
    }
    if (count != available)
      file_.fail("has " + std::to_string(available) + " bytes of values, where its dimensions " +
                 "call for " + std::to_string(count));
  }

  std::int64_t dim(std::size_t axis) const { return static_cast<std::int64_t>(dims_[axis]); }

  // Reads and converts all values.
  template <class T>
  void read(T* to) const {
    std::vector<unsigned char> chunk(kChunkBytes);
    for (std::uint64_t at = values_at_; at < file_.size();) {
      const auto bytes =
          static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBytes, file_.size() - at));
      file_.read(at, chunk.data(), bytes);
      to = std::transform(chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(bytes), to,
                          [](unsigned char value) { return static_cast<T>(value); });
      at += bytes;
    }
  }

 private:
  detail::InputFile file_;
  std::vector<std::uint64_t> dims_;
  std::uint64_t values_at_ = 0;
};

}  // namespace

DataSet DataSet::idx(const std::string& images, const std::string& labels, CallSite site) {
  const detail::CallSiteScope at(site);
  const IdxFile image_file(images, 3);
  const IdxFile label_file(labels, 1);
  const std::int64_t count = image_file.dim(0);
  if (label_file.dim(0) != count)
    detail::refuse_file(labels + ": has " + std::to_string(label_file.dim(0)) + " labels for the " +
                        std::to_string(count) + " images of " + images);
  return DataSet(detail::make_input<float>({count, image_file.dim(1) * image_file.dim(2)},
                                           "DataSet", [&](float* to) { image_file.read(to); }),
                 detail::make_input<std::int32_t>({count}, "DataSet",
                                                  [&](std::int32_t* to) { label_file.read(to); }));
}

}  // namespace ebb
