# The CUDA part, libebb_cuda.so: kernels/cuda and allocator/cuda, built if a toolkit is found and works. ebb loads it
# when a CUDA device is first asked for. So nothing else depends on CUDA: neither ebb's users, nor a program that stays
# on the CPU. The parts of kernels/cuda that ebb itself needs are in loader/ and plans/, without any CUDA header.
set(EBB_CUDA AUTO CACHE STRING "CUDA: AUTO (where a toolkit is found), ON or OFF")
set_property(CACHE EBB_CUDA PROPERTY STRINGS AUTO ON OFF)

# Architectures of the GPUs in this machine; without any, 9.0.
function(ebb_cuda_architectures result)
  set(found "")
  find_program(nvidia_smi nvidia-smi NO_CACHE)
  if(nvidia_smi)
    execute_process(COMMAND ${nvidia_smi} --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE lines RESULT_VARIABLE failed ERROR_QUIET)
    if(NOT failed)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]" found "${lines}")
      list(TRANSFORM found REPLACE "\\." "")
      list(REMOVE_DUPLICATES found)
      list(SORT found COMPARE NATURAL)
    endif()
  endif()
  if(NOT found)
    set(found 90)
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(EBB_HAVE_CUDA OFF)
if(EBB_CUDA)
  if(NOT DEFINED EBB_CUDA_ARCHITECTURES)
    ebb_cuda_architectures(architectures)
  endif()
  set(EBB_CUDA_ARCHITECTURES ${architectures} CACHE STRING
      "Compute capabilities to compile for; PTX is added for the last one")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      # "75-real;80-real;90": machine code for each, PTX for the last. 'native' would fail on a machine without a GPU.
      set(CMAKE_CUDA_ARCHITECTURES ${EBB_CUDA_ARCHITECTURES})
      list(POP_BACK CMAKE_CUDA_ARCHITECTURES newest)
      list(TRANSFORM CMAKE_CUDA_ARCHITECTURES APPEND -real)
      list(APPEND CMAKE_CUDA_ARCHITECTURES ${newest})
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit 12.5 QUIET)
    if(TARGET CUDA::cudart_static)
      set(EBB_HAVE_CUDA ON)
    endif()
  endif()
  if(EBB_HAVE_CUDA)
    list(JOIN EBB_CUDA_ARCHITECTURES " " architectures)
    message(STATUS "ebb: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for ${architectures}")
    # The toolkit's own header first: one that was vendored may be of another version.
    find_path(EBB_CUBLASLT_FOLDER cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS ${EBB_VENDORED}/cublaslt NO_CACHE)
    if(NOT EBB_CUBLASLT_FOLDER)
      message(WARNING "ebb: cublasLt.h was not found, so matrix products will be up to a hundred times slower. It "
                      "comes with CUDA's package of cuBLAS for developers; './ebb vendor' collects it on another machine.")
    endif()
    set(EBB_CUDA_VENDORED ${EBB_CUBLASLT_FOLDER} ${EBB_VENDORED}/cudnn ${EBB_VENDORED}/nccl)
    list(FILTER EBB_CUDA_VENDORED INCLUDE REGEX "/(cublaslt/?|cudnn|nccl)$")
  elseif(EBB_CUDA STREQUAL AUTO)
    message(STATUS "ebb: built without CUDA (no toolkit of 12.5 or newer that works was found)")
  else()
    message(FATAL_ERROR "ebb: EBB_CUDA=ON, but no CUDA toolkit of 12.5 or newer that works was found")
  endif()
else()
  message(STATUS "ebb: built without CUDA (EBB_CUDA=OFF)")
endif()

# The headers that NVRTC reads, as a source of the part (kernels/cuda/plans/fused_text.h). Those of the standard library
# are one text of ours.
function(ebb_embed_headers file)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} core/kernels/functors/*.h)
  list(APPEND headers core/base/dtype.h core/base/half.h core/base/host_device.h core/kernels/convert.h
       kernels/cuda/fold_block.h kernels/cuda/fused_kernel.h kernels/cuda/pack.h kernels/cuda/plans/sum_plan.h
       kernels/cuda/runtime/nvrtc_std.inc)
  foreach(header IN LISTS headers)
    file(READ ${header} text)
    string(APPEND names "    \"ebb/${header}\",\n")
    string(APPEND texts "    R\"ebb(${text})ebb\",\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
  endforeach()
  foreach(header IN ITEMS bit cmath cstddef cstdint cstring cuda_runtime.h limits numbers type_traits)
    string(APPEND names "    \"${header}\",\n")
    string(APPEND texts "    R\"(#include \"ebb/kernels/cuda/runtime/nvrtc_std.inc\")\",\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "// Made by kernels_cuda.cmake.
#include \"ebb/kernels/cuda/plans/fused_text.h\"

namespace ebb::cuda {

const char* const kHeaderNames[] = {
${names}};
const char* const kHeaderTexts[] = {
${texts}};
const int kHeaderCount = sizeof(kHeaderNames) / sizeof(*kHeaderNames);

}  // namespace ebb::cuda
")
endfunction()
ebb_embed_headers(${PROJECT_BINARY_DIR}/kernels_cuda/headers.cpp)

# Sources of the part: ebb's files that see CUDA, and copies of the few others that they need. nvcc spends most of its
# time on headers, so three kernels' sources are compiled as one. (UNITY_BUILD supports CUDA from CMake 3.31 on.)
function(ebb_cuda_sources result)
  set(root ${PROJECT_SOURCE_DIR})
  file(GLOB kernels CONFIGURE_DEPENDS ${root}/kernels/cuda/*.cu)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/kernels/cuda/*.cpp ${root}/kernels/cuda/runtime/*.cu
                                              ${root}/allocator/cuda/*.cpp)
  list(REMOVE_ITEM sources ${root}/kernels/cuda/loader/load.cpp)
  list(APPEND sources ${PROJECT_BINARY_DIR}/kernels_cuda/headers.cpp ${root}/core/base/error.cpp ${root}/core/base/shape.cpp ${root}/core/kernels/kernel.cpp
              ${root}/core/kernels/collective.cpp)
  if(EBB_UNITY_BUILD)
    while(kernels)
      list(SUBLIST kernels 0 3 group)
      list(REMOVE_ITEM kernels ${group})
      list(GET group 0 first)
      cmake_path(GET first STEM first)
      list(TRANSFORM group REPLACE "(.+)" "#include \"\\1\"\n")
      list(JOIN group "" text)
      file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kernels_cuda/from_${first}.cu CONTENT "${text}" @ONLY)
      list(APPEND sources ${PROJECT_BINARY_DIR}/kernels_cuda/from_${first}.cu)
    endwhile()
  endif()
  set(${result} ${sources} ${kernels} PARENT_SCOPE)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/loader/*.cpp
                                    ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/plans/*.cpp)
target_sources(ebb PRIVATE ${sources})
ebb_unite(ebb ${sources})
target_link_libraries(ebb PRIVATE ${CMAKE_DL_LIBS})
# The part and the library must have the same version.
set_source_files_properties(kernels/cuda/loader/part.cpp PROPERTIES
                            COMPILE_DEFINITIONS EBB_VERSION="${PROJECT_VERSION}")
set_source_files_properties(kernels/cuda/loader/load.cpp PROPERTIES
                            COMPILE_DEFINITIONS EBB_CUDA_FOLDER="${CMAKE_INSTALL_FULL_LIBDIR}/ebb")

set(built_for "")
if(EBB_HAVE_CUDA)
  set(built_for ${CMAKE_CUDA_ARCHITECTURES})
  ebb_cuda_sources(sources)
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  list(FILTER sources EXCLUDE REGEX "\\.cu$")
  # The host compiler's sources are a library of their own, since the flags for C++20 differ.
  add_library(ebb_cuda_host OBJECT ${sources})
  target_compile_features(ebb_cuda_host PRIVATE cxx_std_20)
  target_link_libraries(ebb_cuda_host PRIVATE CUDA::cudart_static)
  add_library(ebb_cuda MODULE ${kernels} $<TARGET_OBJECTS:ebb_cuda_host>)
  # Not CUDA_STANDARD or cxx_std_20: CMake 3.25.1 believes that nvcc 13 does not know C++20. CUDA_EXTENSIONS ON is nvcc's
  # default; otherwise CMake would add a -std of its own after ours.
  target_compile_options(ebb_cuda PRIVATE -std=c++20 --expt-relaxed-constexpr)
  # No kernel may take so many registers that fewer than two blocks of 256 threads fit, or spill them.
  target_compile_options(ebb_cuda PRIVATE -maxrregcount=128 -Xptxas=--warn-on-spills,--warn-on-local-memory-usage
                                          $<$<BOOL:${EBB_WERROR}>:-Xptxas=--warning-as-error>)
  target_link_libraries(ebb_cuda PRIVATE CUDA::cudart_static Threads::Threads ${CMAKE_DL_LIBS})
  foreach(target IN ITEMS ebb_cuda ebb_cuda_host)
    ebb_warnings(${target})
    target_include_directories(${target} PRIVATE ${EBB_INCLUDE_DIR})
    target_include_directories(${target} SYSTEM PRIVATE ${EBB_CUDA_VENDORED})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_EXTENSIONS ON
                          CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endforeach()
  set_target_properties(ebb_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS ebb_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ebb)
endif()
unset(sources)
unset(architectures)
set(ebb_CUDA_ARCHITECTURES "${built_for}" CACHE INTERNAL "what ebb_add_custom_operators() compiles for")
unset(built_for)
