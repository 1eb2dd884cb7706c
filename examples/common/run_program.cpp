#include "ebb/examples/common/run_program.h"

#include "ebb/examples/common/run_main.h"

namespace examples {

int run_program(int argc, const char* const* argv, const Program& program,
                const std::function<void(const Options&)>& body) {
  return run_main(program.name, [&] {
    if (const auto options = parse(argc, argv, program)) body(*options);
    return 0;
  });
}

}  // namespace examples
