// Which device the tests of this process run on.
#pragma once
#include "ebb/core/device/device.h"

namespace ebb::tests {

// With EBB_TEST_DEVICE=cuda in the environment, makes Device::cpu() the first CUDA device for the
// life of the process: a GPU, or the emulated one where EBB_CUDA_PART names that. Its options
// (EBB_EMULATED_SEED and others) are in tests/emulated_cuda/options.h. Called before anything asks
// for the device. Throws Error for another name.
void choose_test_device();

bool on_cuda() noexcept;
// The GPU is the emulated one: its kernels compute with the host's arithmetic, and slowly.
bool on_emulated_cuda() noexcept;
// Device::cpu() is the host. A test that asks is about what only the host does, and says what.
inline bool on_host() noexcept { return !on_cuda(); }

// Another device of the kind under test, with nothing on it.
Device own_test_device();

// The device has pages of a few KiB, as the host's: a test that asks is about figures and limits
// below the 2 MiB of a GPU, and is left out there in one visible line. (The emulated GPU has small
// ones with EBB_EMULATED_PAGE=4096.)
bool has_small_pages(const char* file, int line);
#define EBB_SKIP_WITH_LARGE_PAGES() \
  if (!::ebb::tests::has_small_pages(__FILE__, __LINE__)) return

// A simulated device that reads feeds where they are, as the host does and others may not: for
// plans whose bytes a test knows.
Device simulated_host();

}  // namespace ebb::tests
