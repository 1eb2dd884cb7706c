// A session suspended to a file or to plain memory: MEMORY.md, row 25.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "ebb/core/base/error.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/graph/data_limit.h"
#include "ebb/tests/graph/suspend.h"

using namespace ebb;
using namespace ebb::literals;
using namespace ebb::tests;

TEST_CASE("a session that ends suspended leaves neither memory nor file", "[row25]") {
  const TemporaryFolder folder;
  const Bytes bytes;
  {
    Lent lent;
    lent.session.suspend(folder.path("suspended"));
    Session moved = std::move(lent.session);
    CHECK(moved.suspended());
    CHECK_FALSE(lent.session.suspended());
  }
  CHECK(bytes.now() == 0);
  CHECK_FALSE(std::filesystem::exists(folder.path("suspended")));
}

TEST_CASE("a file that is gone, too short or cannot be written is said, and the values stay",
          "[row25]") {
  const TemporaryFolder folder;
  Lent lent;
  Session& session = lent.session;
  lent.steps(1);
  CHECK_ERROR(session.suspend(folder.path("nowhere/file")), FileError,
              "nowhere/file: cannot be made: No such file or directory");
  CHECK_ERROR(session.suspend(folder.path(std::string(5000, 'x'))), FileError,
              "File name too long");
  CHECK_FALSE(session.suspended());
  lent.steps(1);
  const std::string file = folder.path("suspended"), copy = folder.path("copy");
  session.suspend(file);
  std::filesystem::rename(file, copy);
  CHECK_ERROR(session.resume(), FileError, "suspended");
  CHECK(session.suspended());
  std::filesystem::copy_file(copy, file);
  std::filesystem::resize_file(file, std::filesystem::file_size(copy) - 1);
  CHECK_ERROR(session.resume(), FileError, "suspended");
  CHECK(session.suspended());
  CHECK(is_empty(session));
  std::filesystem::remove(file);
  std::filesystem::rename(copy, file);
  session.resume();
  lent.steps(1);
}

TEST_CASE("a file that has no room for the values is said, and the values stay", "[row25]") {
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("w", {1 << 16}, initializers::constant(3));
  const TemporaryFolder folder;
  Session session(graph);
  session.initialize();
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100 << 10, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string why = ebb::tests::why_not_thrown<FileError>(
      [&] { session.suspend(folder.path("full")); }, "full: cannot be written: ");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(why == "");
  CHECK_FALSE(session.suspended());
  CHECK_FALSE(std::filesystem::exists(folder.path("full")));
  CHECK(session.value(w).to_vector<float>() == std::vector<float>(1 << 16, 3));
}

TEST_CASE("a file that another has changed is not taken for the values of the session", "[row25]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("suspended");
  for (const Device& device : devices()) {
    CAPTURE(device.name());
    Lent lent(device);
    Session& session = lent.session;
    session.suspend(file);
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file));
    for (const std::streamoff at : {std::streamoff{0}, size / 2, size - 1}) {
      const auto flip = [&] {
        stream.seekg(at);
        const auto byte = static_cast<char>(stream.get());
        stream.seekp(at);
        stream.put(static_cast<char>(byte ^ 1)).flush();
      };
      flip();
      CHECK_ERROR(session.resume(), FileError, file + " does not hold what suspend() has written");
      CHECK(session.suspended());
      CHECK(is_empty(session));
      flip();
    }
    session.resume();
    lent.steps(1);
  }
}

TEST_CASE("a suspension that the host has no room for is refused, and a file needs none",
          "[row25][row11]") {
  if (!tests::DataLimit::can_be_tried()) return;
  const TemporaryFolder folder;
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("w", {8 << 20}, initializers::constant(3));
  Session session(graph);
  session.initialize();
  const std::size_t held = session.stats().reserved.current;
  {
    const tests::DataLimit limit(8_MiB);
    CHECK_ERROR(session.suspend(), OutOfMemory, "the values of a session that is suspended");
    CHECK_ERROR(session.suspend(), OutOfMemory, "suspend(file) needs no memory of the host");
    CHECK_FALSE(session.suspended());
    CHECK(session.stats().reserved.current == held);
    CHECK_NOTHROW(session.suspend(folder.path("suspended")));
  }
  session.resume();
  session.suspend();
  session.resume();
  CHECK(session.value(w).to_vector<float>()[(8 << 20) - 1] == 3);
}

TEST_CASE("a file that is there already is not written over by a session that is suspended",
          "[row25]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("values");
  std::ofstream(file) << "somebody's";
  Lent lent;
  Session& session = lent.session;
  CHECK_ERROR(session.suspend(file), FileError, "is there already");
  CHECK_FALSE(session.suspended());
  std::string text;
  std::getline(std::ifstream(file), text);
  CHECK(text == "somebody's");
}
