#pragma once

namespace ebb {

// The user's source line that asked for something. Taken as default arguments at the public
// functions (clang 14 has no std::source_location); the file name is static.
struct CallSite {
  const char* file = "";
  unsigned line = 0;
};

}  // namespace ebb

// The trailing parameters of a public function that wants its caller's line.
#define EBB_CALL_SITE const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()
