// The server of live pages: its port, and several who ask at once.
#include "ebb/core/memory/serve.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/tests/catch.h"

using namespace ebb;

namespace {

class Connection {
 public:
  explicit Connection(int port) : port_(port), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval most = {.tv_sec = 4, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The beginning of the answer; nothing if it takes longer than 4 seconds.
  std::string get() const {
    const std::string text =
        "GET /data.json HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) + "\r\n\r\n";
    REQUIRE(::write(socket_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    char start[12];
    const ssize_t count = ::read(socket_, start, sizeof start);
    return {start, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }

 private:
  const int port_, socket_;
};

}  // namespace

TEST_CASE("a port that is taken, or is none, is an error of serve()", "[serve][host]") {
  const memory::Server server = memory::serve(0, Device::cpu());
  CHECK_THROWS_AS(memory::serve(server.port(), Device::cpu()), Error);
  CHECK_THROWS_AS(memory::serve(65536 + server.port(), Device::cpu()), Error);
  CHECK_THROWS_AS(memory::serve(-1, Device::cpu()), Error);
}

TEST_CASE("connections that are kept open keep nobody waiting for long", "[serve][host]") {
  const memory::Server server = memory::serve(0, Device::cpu());
  const Connection idle(server.port()), first(server.port()), second(server.port());
  CHECK(first.get() == "HTTP/1.1 200");
  CHECK(second.get() == "HTTP/1.1 200");
}
