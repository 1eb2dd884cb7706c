#include "ebb/examples/common/run_main.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "ebb/core/memory/figures.h"
#include "ebb/examples/common/arguments.h"

namespace examples {

namespace {

std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

int fail(const std::string& program, const std::string& why, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), first_line(why).c_str());
  return code;
}

// Its first line says what; the limit says why.
std::string in_one_line(const ebb::OutOfMemory& error) {
  const std::string text = first_line(error.what());
  return error.limit_bytes() == ebb::memory::kNoLimit
             ? text
             : text + " within a limit of " + ebb::memory::figure(error.limit_bytes());
}

}  // namespace

int run_main(const std::string& program, const std::function<int()>& body) {
  try {
    const int code = body();
    // A full disk, a closed pipe: what nobody can read has not been done.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(program, "the standard output could not be written", 1);
    return code;
  } catch (const BadArguments& error) {
    return fail(program, std::string(error.what()) + " (--help lists the arguments)", 2);
  } catch (const ebb::OutOfMemory& error) {
    return fail(program, in_one_line(error), 1);
  } catch (const std::exception& error) {
    return fail(program, error.what(), 1);
  }
}

}  // namespace examples
