// The page of a running program, as a browser of this machine asks for it.
#include "ebb/core/memory/serve.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/recording.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/kib.h"

namespace ebb::tests {
namespace {

// A connection, of which reading waits for at most 4 seconds; closed where nobody listens.
int connected(int port, const char* address = "127.0.0.1") {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval most = {.tv_sec = 4, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, address, &to.sin_addr);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return socket;
  ::close(socket);
  return -1;
}

// The answer to a request; nothing where nobody listens.
std::string asked(int port, const std::string& request, const std::string& host,
                  const char* address = "127.0.0.1") {
  const int socket = connected(port, address);
  std::string answer;
  if (socket >= 0) {
    const std::string text = request + " HTTP/1.1\r\n" +
                             (host.empty() ? "" : "Host: " + host + "\r\n") +
                             "Content-Length: 0\r\nConnection: close\r\n\r\n";
    static_cast<void>(::send(socket, text.data(), text.size(), MSG_NOSIGNAL));
    char part[4096];
    for (ssize_t count; (count = ::recv(socket, part, sizeof part, 0)) > 0;)
      answer.append(part, static_cast<std::size_t>(count));
  }
  ::close(socket);
  return answer;
}

std::string status(const std::string& answer) { return answer.substr(0, answer.find("\r\n")); }

nlohmann::json body(const std::string& answer) {
  return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
}

}  // namespace

TEST_CASE("a served page is this machine's to read, by its own name, while its server is",
          "[host]") {
  const Device device = Device::simulated("cpu", std::size_t{1} << 30);
  signal(SIGPIPE, SIG_DFL);
  std::optional<memory::Server> server = memory::serve(0, device);
  struct sigaction now = {};
  sigaction(SIGPIPE, nullptr, &now);
  CHECK(now.sa_handler == SIG_DFL);
  const int port = server->port();
  const std::string here = "127.0.0.1:" + std::to_string(port);
  const struct {
    const char* request;
    std::string host, status;
  } cases[] = {{"GET /", here, "HTTP/1.1 200 OK"},
               {"GET /data.json", "localhost", "HTTP/1.1 200 OK"},
               {"GET /data.json", "elsewhere.example", "HTTP/1.1 403 Forbidden"},
               {"GET /", "127.0.0.1.elsewhere.example", "HTTP/1.1 403 Forbidden"},
               {"GET /", "", "HTTP/1.1 403 Forbidden"},
               {"GET /other", here, "HTTP/1.1 404 Not Found"},
               {"POST /data.json", here, "HTTP/1.1 404 Not Found"}};
  for (const auto& one : cases) {
    INFO(one.request << " of " << one.host);
    CHECK(status(asked(port, one.request, one.host)) == one.status);
  }
  CHECK(asked(port, "GET /", here, "127.0.0.2") == "");  // another address of this machine
  for (const int taken : {port, 65536 + port, -1})
    CHECK_ERROR(memory::serve(taken, device), Error,
                "[serve] port " + std::to_string(taken) + " of 127.0.0.1 cannot be had");

  CHECK(body(asked(port, "GET /data.json", here))["runs"].empty());
  {
    const memory::Recording recording(device);
    const Tensor held = kib(4, device);
    const nlohmann::json runs = body(asked(port, "GET /data.json", here))["runs"];
    REQUIRE(runs.size() == 1);
    CHECK(runs[0]["pieces"].dump().find(",4096,") != std::string::npos);
  }
  int idle[5];  // more than the server has threads
  for (int& one : idle) one = connected(port);
  CHECK(status(asked(port, "GET /", here)) == "HTTP/1.1 200 OK");
  for (const int one : idle) ::close(one);
  server.reset();
  CHECK(asked(port, "GET /", here) == "");
  CHECK(memory::serve(port, device).port() == port);
}

}  // namespace ebb::tests
