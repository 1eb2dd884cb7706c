// gpu_facts FILE: writes the facts that ebb assumes about a GPU, as found on this one, as JSON.
#include <cstdio>

#include "ebb/tests/gpu_check/facts/run.h"

int main(int argc, char** argv) {
  if (argc == 2) return ebb_gpu_facts(argv[1]);
  std::fprintf(stderr, "usage: gpu_facts FILE\n");
  return 2;
}
