// cuBLASLt's descriptors.
#include <cstddef>

#include "ebb/tests/emulated_cuda/cublaslt/problem.h"
#include "ebb/tests/emulated_cuda/queues/machine.h"

using namespace ebb::emulated;

namespace {

// Offset and size of an attribute in its descriptor. Size 0: the emulation has no such attribute.
struct Place {
  std::size_t at = 0, bytes = 0;
};
#define EMULATED_PLACE(Held, member) \
  Place { offsetof(Held, member), sizeof(Held::member) }

Place place_of(cublasLtMatrixLayoutAttribute_t attribute) {
  return attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? EMULATED_PLACE(Layout, batches)
                                                         : EMULATED_PLACE(Layout, batch_stride);
}

Place place_of(cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return EMULATED_PLACE(Operation, transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return EMULATED_PLACE(Operation, transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return EMULATED_PLACE(Operation, epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return EMULATED_PLACE(Operation, bias);
  }
  return {};
}

Place place_of(cublasLtMatmulPreferenceAttributes_t attribute) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    return EMULATED_PLACE(Preference, workspace_bytes);
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
    return EMULATED_PLACE(Preference, reductions);
  const auto matrix =
      static_cast<std::size_t>(attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  return {offsetof(Preference, alignment) + matrix * sizeof(std::uint32_t), sizeof(std::uint32_t)};
}
#undef EMULATED_PLACE

template <class Opaque, class Attribute>
cublasStatus_t set(Opaque* opaque, Attribute attribute, const void* value, std::size_t bytes) {
  const Place place = place_of(attribute);
  if (!opaque || !value || place.bytes == 0 || place.bytes != bytes)
    return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(reinterpret_cast<char*>(opaque) + place.at, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Opaque, class Held>
cublasStatus_t create(Opaque** made, const Held& held) {
  if (!made) return CUBLAS_STATUS_INVALID_VALUE;
  *made = new Opaque{};
  write(*made, held);
  ++machine().library_objects;
  return CUBLAS_STATUS_SUCCESS;
}
template <class Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  machine().library_objects -= opaque != nullptr;
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  return create(
      layout,
      Layout{.type = static_cast<std::uint32_t>(type), .rows = rows, .columns = columns, .ld = ld});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  return set(layout, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return create(desc, Operation{.compute = compute, .scale = scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return destroy(desc); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return set(desc, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return set(preference, attribute, value, bytes);
}
