#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "ebb/tests/catch.h"

namespace ebb::tests {

struct Ended {
  int code;
  std::string output;  // and what went to the standard error
};

// Runs one of the programs in examples/, as a user does.
inline Ended run(const std::string& arguments, const std::string& standard_output = "&1",
                 const std::string& environment = "") {
  // The standard error goes into the pipe that is read here, wherever the output goes.
  const std::string command =
      environment + EBB_PROGRAMS + "/" + arguments + " 2>&1 >" + standard_output;
  Ended ended{-1, ""};
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::array<char, 4096> buffer;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    ended.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

inline bool holds(const Ended& ended, const std::string& text) {
  return ended.output.find(text) != std::string::npos;
}

inline bool is_one_line(const Ended& ended) {
  return ended.output.find('\n') + 1 == ended.output.size();
}

}  // namespace ebb::tests
