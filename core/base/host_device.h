#pragma once

// What is compiled for GPUs as well, where their compiler reads it.
#if defined(__CUDACC__)
#define EBB_HOST_DEVICE __host__ __device__
#else
#define EBB_HOST_DEVICE
#endif
