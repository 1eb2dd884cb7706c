#include "ebb/tests/emulated_cuda/execution/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

namespace ebb::emulated {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

// The functions in the symbol table of the file that this code was loaded from: the dynamic one has
// no hidden names.
std::map<std::uintptr_t, std::string> read_functions() {
  std::map<std::uintptr_t, std::string> functions;
  Dl_info info = {};
  if (!::dladdr(reinterpret_cast<const void*>(&symbol_name), &info)) return functions;
  std::ifstream stream(info.dli_fname, std::ios::binary);
  if (!stream) stream.open("/proc/self/exe", std::ios::binary);
  const std::vector<char> file{std::istreambuf_iterator<char>(stream), {}};
  ElfW(Ehdr) header;
  if (file.size() < sizeof(header)) return functions;
  std::memcpy(&header, file.data(), sizeof(header));
  const std::uintptr_t offset =
      header.e_type == ET_DYN ? reinterpret_cast<std::uintptr_t>(info.dli_fbase) : 0;
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (header.e_shoff + sections.size() * sizeof(ElfW(Shdr)) > file.size()) return functions;
  std::memcpy(sections.data(), file.data() + header.e_shoff, sections.size() * sizeof(ElfW(Shdr)));
  for (const auto& section : sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections.size()) continue;
    const char* const names = file.data() + sections[section.sh_link].sh_offset;
    for (std::size_t at = 0; at + sizeof(ElfW(Sym)) <= section.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      std::memcpy(&symbol, file.data() + section.sh_offset + at, sizeof(symbol));
      if ((symbol.st_info & 15) == STT_FUNC && symbol.st_value)
        functions.emplace(offset + symbol.st_value, names + symbol.st_name);
    }
  }
  return functions;
}

}  // namespace

std::string symbol_name(const void* function) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static const auto* const functions = new std::map(read_functions());
  const auto found = functions->find(reinterpret_cast<std::uintptr_t>(function));
  if (found != functions->end()) return demangled(found->second.c_str());
  char text[32];
  std::snprintf(text, sizeof(text), "kernel %p", function);
  return text;
}

}  // namespace ebb::emulated
