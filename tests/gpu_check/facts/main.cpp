// gpu_facts FILE: what ebb's assumptions about a GPU come to on this one, as JSON.
#include <cstdio>

#include "ebb/tests/gpu_check/facts/run.h"

int main(int argc, char** argv) {
  if (argc == 2) return ebb_gpu_facts(argv[1]);
  std::fprintf(stderr, "usage: gpu_facts FILE\n");
  return 2;
}
