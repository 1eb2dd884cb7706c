// The device that the tests of this process run on.
#pragma once
#include "ebb/core/device/device.h"

namespace ebb::tests {

// With EBB_TEST_DEVICE=cuda in the environment, makes Device::cpu() the first CUDA device for the
// life of the process: a GPU, or the emulated one where EBB_CUDA_PART names that. Its options
// (EBB_EMULATED_SEED and others) are in tests/emulated_cuda/options.h. Called before anything asks
// for the device. Throws Error for another name.
void choose_test_device();

bool on_cuda() noexcept;
// Whether the GPU is the emulated one. Its kernels compute with the host's arithmetic, and slowly.
bool on_emulated_cuda() noexcept;
// Whether kernels compute with the functions of NVIDIA's mathematical library, which rounds
// otherwise than the host's: its table of errors is in the CUDA C++ Programming Guide.
inline bool on_gpu() noexcept { return on_cuda() && !on_emulated_cuda(); }
// Whether Device::cpu() is the host. A test that asks must be about something only the host does,
// and say so.
inline bool on_host() noexcept { return !on_cuda(); }

// Another device of the kind under test, with nothing on it. Large blocks take whole pages each, so
// that budgets bind programs of the smallest values.
Device own_test_device(bool has_large_blocks = false);

// Whether the device has pages of a few KiB, as the host has. Tests of figures and limits below the
// 2 MiB pages of a GPU ask this and are skipped there, in one visible line. (With
// EBB_EMULATED_PAGE=4096 the emulated GPU has small ones.)
bool has_small_pages(const char* file, int line);
#define EBB_SKIP_WITH_LARGE_PAGES() \
  if (!::ebb::tests::has_small_pages(__FILE__, __LINE__)) return

// A simulated device that reads feeds in place, as the host does. For plans whose bytes a test
// knows.
Device simulated_host();

}  // namespace ebb::tests
