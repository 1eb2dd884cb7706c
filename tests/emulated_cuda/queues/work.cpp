#include "ebb/tests/emulated_cuda/queues/work.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>

#include "ebb/tests/emulated_cuda/execution/grid.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {

KernelWork::KernelWork(const KernelCall& call, dim3 grid, dim3 block)
    : call_(call), grid_(grid), block_(block), arguments_((call.argument_bytes + 15) / 16) {
  if (call.argument_bytes > 0) std::memcpy(arguments_.data(), call.arguments, call.argument_bytes);
}

// Called only after a failure, since it is slow. dladdr does not know hidden functions, but
// addr2line reads the file's symbol table.
std::string KernelWork::name() const {
  Dl_info info = {};
  link_map* loaded = nullptr;
  char command[4096], line[4096] = "";
  if (::dladdr1(call_.kernel, &info, reinterpret_cast<void**>(&loaded), RTLD_DL_LINKMAP) == 0)
    return "kernel";
  std::snprintf(command, sizeof(command), "addr2line -fCe '%s' 0x%zx 2>/dev/null", info.dli_fname,
                reinterpret_cast<std::size_t>(call_.kernel) - loaded->l_addr);
  if (FILE* const answer = ::popen(command, "r")) {
    static_cast<void>(!std::fgets(line, sizeof(line), answer));
    ::pclose(answer);
  }
  return "kernel " + std::string(line, std::strcspn(line, "\n"));
}

Outcome KernelWork::run(Random& random) const {
  std::vector<Sixteen> arguments = arguments_;
  const AddressSpace& space = address_space();
  auto* const bytes = reinterpret_cast<unsigned char*>(arguments.data());
  for (std::size_t at = 0; at + sizeof(void*) <= call_.argument_bytes; at += sizeof(void*)) {
    void* word = nullptr;
    std::memcpy(&word, bytes + at, sizeof(word));
    if (!space.holds(word)) continue;
    word = space.alias(word);
    std::memcpy(bytes + at, &word, sizeof(word));
  }
  KernelCall call = call_;
  call.arguments = bytes;
  return run_grid(call, grid_, block_, random);
}

Outcome FunctionWork::run(Random&) const { return run_guarded(function_); }

Outcome check_parts(const std::vector<DevicePart>& parts) {
  const AddressSpace& space = address_space();
  for (const auto& [address, bytes, what] : parts) {
    if (bytes == 0 || !space.holds(address) || space.is_mapped(address, bytes)) continue;
    char text[32];
    std::snprintf(text, sizeof(text), "%p", address);
    return {cudaErrorIllegalAddress, std::string(what) + ": not all of the " +
                                         std::to_string(bytes) + " bytes at device address " +
                                         text + " is mapped"};
  }
  return {};
}

}  // namespace ebb::emulated
