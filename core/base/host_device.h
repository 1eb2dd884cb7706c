#pragma once

// Marks functions that nvcc also compiles for GPUs.
#if defined(__CUDACC__)
#define EBB_HOST_DEVICE __host__ __device__
#else
#define EBB_HOST_DEVICE
#endif
