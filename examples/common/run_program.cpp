#include "ebb/examples/common/run_program.h"

#include <cstdio>
#include <exception>

#include "ebb/core/memory/figures.h"

namespace examples {

namespace {

int fail(const Program& program, std::string why, int code) {
  why.resize(std::min(why.find('\n'), why.size()));
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.name.c_str(), why.c_str());
  return code;
}

// Its first line says what; the limit says why.
std::string in_one_line(const ebb::OutOfMemory& error) {
  std::string text = error.what();
  text.resize(std::min(text.find('\n'), text.size()));
  return error.limit_bytes() == ebb::memory::kNoLimit
             ? text
             : text + " within a limit of " + ebb::memory::figure(error.limit_bytes());
}

}  // namespace

int run_program(int argc, const char* const* argv, const Program& program,
                const std::function<void(const Options&)>& body) {
  try {
    if (const auto options = parse(argc, argv, program)) body(*options);
    // A full disk, a closed pipe: what nobody can read has not been done.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(program, "the standard output could not be written", 1);
    return 0;
  } catch (const BadArguments& error) {
    return fail(program, std::string(error.what()) + " (--help lists the arguments)", 2);
  } catch (const ebb::OutOfMemory& error) {
    return fail(program, in_one_line(error), 1);
  } catch (const std::exception& error) {
    return fail(program, error.what(), 1);
  }
}

}  // namespace examples
