#pragma once

// Writes the facts of GPU number 0 into a file, anew after each family: what is cut off keeps what
// it has. 0, or 1 where a family could not be told.
extern "C" __attribute__((visibility("default"))) int ebb_gpu_facts(const char* file);
