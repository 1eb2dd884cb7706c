#pragma once

// Writes the facts about GPU number 0 into a file, again after each family, so that an interrupted
// run keeps its facts. Returns 0, or 1 if a family failed.
extern "C" __attribute__((visibility("default"))) int ebb_gpu_facts(const char* file);
