#include "ebb/tests/emulated_cuda/cublaslt/descriptors.h"

#include <cstddef>
#include <new>

#include "ebb/tests/emulated_cuda/library_objects.h"

using namespace ebb::emulated;

namespace {

// Where an attribute lies in what is held, and how large it is; 0: there is none.
struct Place {
  std::size_t at = 0, bytes = 0;
};
#define EMULATED_PLACE(Held, member) \
  Place { offsetof(Held, member), sizeof(Held::member) }

Place place_of(cublasLtMatrixLayoutAttribute_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return EMULATED_PLACE(Layout, type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return EMULATED_PLACE(Layout, order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return EMULATED_PLACE(Layout, rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return EMULATED_PLACE(Layout, columns);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return EMULATED_PLACE(Layout, ld);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return EMULATED_PLACE(Layout, batches);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return EMULATED_PLACE(Layout, batch_stride);
  }
  return {};
}

Place place_of(cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return EMULATED_PLACE(Operation, compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return EMULATED_PLACE(Operation, scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return EMULATED_PLACE(Operation, pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return EMULATED_PLACE(Operation, transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return EMULATED_PLACE(Operation, transpose_b);
    case CUBLASLT_MATMUL_DESC_TRANSC:
      return EMULATED_PLACE(Operation, transpose_c);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return EMULATED_PLACE(Operation, epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return EMULATED_PLACE(Operation, bias);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return EMULATED_PLACE(Operation, bias_stride);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return EMULATED_PLACE(Operation, aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return EMULATED_PLACE(Operation, aux_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return EMULATED_PLACE(Operation, aux_stride);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET:
      return EMULATED_PLACE(Operation, multiprocessors);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return EMULATED_PLACE(Operation, aux_type);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return EMULATED_PLACE(Operation, bias_type);
  }
  return {};
}

Place place_of(cublasLtMatmulPreferenceAttributes_t attribute) {
  constexpr auto alignment = [](std::size_t i) {
    return Place{offsetof(Preference, alignment) + i * sizeof(std::uint32_t),
                 sizeof(std::uint32_t)};
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE:
      return EMULATED_PLACE(Preference, search);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return EMULATED_PLACE(Preference, workspace_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return EMULATED_PLACE(Preference, reductions);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return alignment(0);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return alignment(1);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return alignment(2);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return alignment(3);
    case CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT:
      return EMULATED_PLACE(Preference, waves);
    case CUBLASLT_MATMUL_PREF_IMPL_MASK:
      return EMULATED_PLACE(Preference, implementations);
  }
  return {};
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

template <class Opaque, class Attribute>
cublasStatus_t get(const Opaque* opaque, Attribute attribute, void* value, std::size_t bytes,
                   std::size_t* written) {
  const Place place = place_of(attribute);
  if (!opaque || place.bytes == 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (written) *written = place.bytes;
  if (bytes == 0 && written) return CUBLAS_STATUS_SUCCESS;
  if (!value || bytes != place.bytes) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, reinterpret_cast<const char*>(opaque) + place.at, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Opaque, class Init>
cublasStatus_t create(Opaque** made, const Init& init) {
  if (!made) return CUBLAS_STATUS_INVALID_VALUE;
  *made = new (std::nothrow) Opaque{};
  library_objects += *made != nullptr;
  return *made ? init(*made) : CUBLAS_STATUS_ALLOC_FAILED;
}
template <class Opaque>
cublasStatus_t destroy(Opaque* opaque) {
  library_objects -= opaque != nullptr;
  delete opaque;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t bytes,
                                                 cudaDataType type, uint64_t rows, uint64_t columns,
                                                 int64_t ld) {
  if (!layout || bytes < sizeof(Layout)) return CUBLAS_STATUS_INVALID_VALUE;
  Layout held;
  held.type = static_cast<std::uint32_t>(type);
  held.rows = rows;
  held.columns = columns;
  held.ld = ld;
  write(layout, held);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
  return create(layout, [&](auto* made) {
    return cublasLtMatrixLayoutInit_internal(made, sizeof(*made), type, rows, columns, ld);
  });
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  return set(layout, attribute, value, bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                void* value, size_t bytes, size_t* written) {
  return get(layout, attribute, value, bytes, written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t bytes,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  if (!desc || bytes < sizeof(Operation)) return CUBLAS_STATUS_INVALID_VALUE;
  Operation held;
  held.compute = compute;
  held.scale = scale;
  write(desc, held);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  return create(desc, [&](auto* made) {
    return cublasLtMatmulDescInit_internal(made, sizeof(*made), compute, scale);
  });
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return destroy(desc); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return set(desc, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute, void* value,
                                              size_t bytes, size_t* written) {
  return get(desc, attribute, value, bytes, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference,
                                                     size_t bytes) {
  if (!preference || bytes < sizeof(Preference)) return CUBLAS_STATUS_INVALID_VALUE;
  write(preference, Preference{});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return create(preference, [](auto* made) {
    return cublasLtMatmulPreferenceInit_internal(made, sizeof(*made));
  });
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return set(preference, attribute, value, bytes);
}
