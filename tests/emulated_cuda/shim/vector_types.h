// The built-in vector types of CUDA that ebb's kernels use, with CUDA's sizes and alignments.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  unsigned x, y, z;
};

#define EMULATED_VECTOR2(name, Scalar)      \
  struct alignas(2 * sizeof(Scalar)) name { \
    Scalar x, y;                            \
  };                                        \
  constexpr name make_##name(Scalar x, Scalar y) noexcept { return {x, y}; }
#define EMULATED_VECTOR4(name, Scalar)                                          \
  struct alignas(16) name {                                                     \
    Scalar x, y, z, w;                                                          \
  };                                                                            \
  constexpr name make_##name(Scalar x, Scalar y, Scalar z, Scalar w) noexcept { \
    return {x, y, z, w};                                                        \
  }

EMULATED_VECTOR2(int2, int)
EMULATED_VECTOR2(uint2, unsigned)
EMULATED_VECTOR2(float2, float)
EMULATED_VECTOR2(double2, double)
EMULATED_VECTOR2(longlong2, long long)
EMULATED_VECTOR2(ulonglong2, unsigned long long)
EMULATED_VECTOR4(int4, int)
EMULATED_VECTOR4(uint4, unsigned)
EMULATED_VECTOR4(float4, float)

#undef EMULATED_VECTOR2
#undef EMULATED_VECTOR4

constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z) noexcept { return {x, y, z}; }
