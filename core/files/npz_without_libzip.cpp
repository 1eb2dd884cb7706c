// Replaces npz.cpp in a build without libzip.
#include "ebb/core/base/error.h"
#include "ebb/core/files/npy.h"

namespace ebb::npz {

namespace {
[[noreturn]] void refuse(const std::string& file) {
  throw Error("[npz] " + file +
              ": this ebb was built without libzip, by which it reads and writes .npz files; "
              "install it (Debian: apt-get install libzip-dev) and build ebb again, or use .npy" +
              ebb::detail::at(ebb::detail::entry()));
}
}  // namespace

struct File::Impl {};

bool is_supported() noexcept { return false; }
void write(const std::string& file, std::span<const View>) { refuse(file); }
void check_write(const std::string& file, std::span<const View>) { refuse(file); }
File::File(const std::string& file) { refuse(file); }
File::~File() = default;
File::File(File&&) noexcept = default;
const std::vector<File::Entry>& File::entries() const noexcept {
  static const std::vector<Entry> none;  // never called: no File can be made
  return none;
}
void File::read(const std::string& name, void*) const { refuse(name); }

}  // namespace ebb::npz
