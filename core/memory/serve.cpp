// The library ebb::serve, the only unit that includes cpp-httplib.
#include "ebb/core/memory/serve.h"

#include <sys/socket.h>
// Sends without SIGPIPE, whose handling stays the program's.
#define CPPHTTPLIB_SEND_FLAGS MSG_NOSIGNAL
#include <httplib.h>
#include <signal.h>

#include <string>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/page.h"

namespace ebb::memory {

namespace {
std::string data_of(const Device& device) {
  const detail::PageRun run{.name = "now", .log = device.runtime().allocator().recorder()};
  return detail::page_data("Memory of " + device.name(), &device,
                           {&run, run.log ? std::size_t{1} : std::size_t{0}}, true);
}

struct Running {
  httplib::Server http;
  std::jthread thread = {};

  ~Running() { http.stop(); }  // before the thread is joined
};
}  // namespace

Server serve(int port, const Device& device) {
  struct sigaction on_pipe = {};
  sigaction(SIGPIPE, nullptr, &on_pipe);
  const auto running = std::make_shared<Running>();  // httplib's constructor ignores SIGPIPE
  sigaction(SIGPIPE, &on_pipe, nullptr);
  httplib::Server& http = running->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(4); };
  // A browser keeps connections that ask nothing: none may hold a thread for long.
  http.set_keep_alive_max_count(1);
  http.set_keep_alive_timeout(1);
  http.set_read_timeout(1);
  // httplib's own options share the port with whoever else serves there.
  http.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  // A page of another site whose name leads here would send that name.
  http.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    const std::string host = request.get_header_value("Host");
    const std::string name = host.substr(0, host.find(':'));
    if (name == "127.0.0.1" || name == "localhost")
      return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    return httplib::Server::HandlerResponse::Handled;
  });
  http.Get("/", [device](const httplib::Request&, httplib::Response& response) {
    response.set_content(detail::page_of(data_of(device)), "text/html; charset=utf-8");
  });
  http.Get("/data.json", [device](const httplib::Request&, httplib::Response& response) {
    response.set_content(data_of(device), "application/json");
  });
  const char* const here = "127.0.0.1";
  const bool is_port = port > 0 && port < 65536;
  const int bound = port == 0                                  ? http.bind_to_any_port(here)
                    : is_port && http.bind_to_port(here, port) ? port
                                                               : -1;
  if (bound < 0)
    throw Error("[serve] port " + std::to_string(port) + " of 127.0.0.1 cannot be had");
  running->thread = std::jthread([&http] { http.listen_after_bind(); });
  http.wait_until_ready();
  return Server(bound, running);
}

}  // namespace ebb::memory
