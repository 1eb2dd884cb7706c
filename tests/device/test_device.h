// Which device the tests of this process run on.
#pragma once
#include "ebb/core/device/device.h"

namespace ebb::tests {

class DeferredBackend;

// With EBB_TEST_DEVICE=deferred in the environment, makes Device::cpu() a deferred device for the
// life of the process, with =cuda the first CUDA device: a GPU, or the emulated one where
// EBB_CUDA_PART names that. Called before anything asks for it. Throws Error for another name.
//   EBB_DEFERRED_SEED=N         another order of what may happen in any
//   EBB_DEFERRED_CAPTURES=0     programs are not captured: feeds are read where they are
//   EBB_DEFERRED_AT_ONCE=1      work is done when it is asked for: whether a failure is about order
//   EBB_DEFERRED_DROPS_WAITS=1  streams wait for nothing: whether a forgotten wait would show
void choose_test_device();

// The backend of Device::cpu() where that is deferred, else null.
DeferredBackend* test_backend() noexcept;
bool on_cuda() noexcept;
// Device::cpu() is the host. A test that asks is about what only the host does, and says what.
inline bool on_host() noexcept { return !test_backend() && !on_cuda(); }

// The device has pages of a few KiB, as the host's: a test that asks is about figures and limits
// below the 2 MiB of a GPU, and is left out there in one visible line. (The emulated GPU has small
// ones with EBB_EMULATED_PAGE=4096.)
bool has_small_pages(const char* file, int line);
#define EBB_SKIP_WITH_LARGE_PAGES() \
  if (!::ebb::tests::has_small_pages(__FILE__, __LINE__)) return

// While one is alive, kernels of tests run when they are asked for and answer at once, whatever the
// device: as one that finds out on the host that it cannot.
class AtOnce {
 public:
  AtOnce();
  ~AtOnce();
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;

 private:
  bool before_ = false;
};

// A simulated device that reads feeds where they are, as the host does and others may not: for
// plans whose bytes a test knows.
Device simulated_host();

}  // namespace ebb::tests
