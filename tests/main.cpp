// The main of every test program. Catch2 3 has one in a library; Catch2 2 wants it compiled, once.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include <cstdio>
#include <exception>
#include <string>

#include "ebb/core/device/runtime.h"
#include "ebb/tests/device/test_device.h"

namespace {

#if __has_include(<catch2/catch_session.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

// A test tagged [host] knows no device, and runs on none but the host: that it asks for no memory
// of the device is checked here.
class HostTests final : public Listener {
 public:
  using Listener::Listener;
  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    Listener::testCaseStarting(test);
    before_ = requested();
  }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    Listener::testCaseEnded(stats);
    const Catch::TestCaseInfo& test = *info(stats);
    if (test.tagsAsString().find("[host]") == std::string::npos || requested() == before_) return;
    std::printf("tagged [host], but uses the device: %s\n", test.name.c_str());
    found = true;
  }
  static inline bool found = false;

 private:
  static std::size_t requested() {
    return ebb::Device::cpu().runtime().allocator().stats().requested.total;
  }
  static const Catch::TestCaseInfo* info(const Catch::TestCaseStats& stats) {
#if __has_include(<catch2/catch_session.hpp>)
    return stats.testInfo;
#else
    return &stats.testInfo;
#endif
  }
  std::size_t before_ = 0;
};

CATCH_REGISTER_LISTENER(HostTests)

}  // namespace

int main(int argc, char** argv) {
  try {
    ebb::tests::choose_test_device();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  const int failed = Catch::Session().run(argc, argv);
  return HostTests::found ? 1 : failed;
}
