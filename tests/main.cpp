// The main of every test program. Catch2 3 has one in a library; Catch2 2 wants it compiled, once.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>
#include <exception>

#include "ebb/tests/device/test_device.h"

int main(int argc, char** argv) {
  try {
    ebb::tests::choose_test_device();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return Catch::Session().run(argc, argv);
}
