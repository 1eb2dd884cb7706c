#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace ebb::tests {

// Whether doing it ends the process, tried in a child.
template <class Function>
bool dies(const Function& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    // The death is wanted: nobody is to report it.
    static_cast<void>(!std::freopen("/dev/null", "w", stderr));
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) ::signal(signal, SIG_DFL);
    function();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace ebb::tests
