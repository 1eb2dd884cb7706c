#include "ebb/tests/emulated_cuda/options.h"

#include <cstdlib>

namespace ebb::emulated {
namespace {

template <class T>
void read(const char* name, T& value) {
  if (const char* text = std::getenv(name))
    value = static_cast<T>(std::strtoull(text, nullptr, 10));
}

Options from_environment() {
  Options options;
  read("EBB_EMULATED_SEED", options.seed);
  read("EBB_EMULATED_PAGE", options.page_bytes);
  read("EBB_EMULATED_CAPABILITY", options.capability);
  read("EBB_EMULATED_DEVICES", options.devices);
  read("EBB_EMULATED_DRIVER", options.driver);
  options.without = std::getenv("EBB_EMULATED_WITHOUT");
  return options;
}

}  // namespace

const Options& options() {
  static const Options options = from_environment();
  return options;
}

}  // namespace ebb::emulated
