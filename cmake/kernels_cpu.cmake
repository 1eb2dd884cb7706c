# The CPU kernels: the only code that sees Eigen and, since Eigen's alignment depends on it, the only code compiled for
# one instruction set. Built apart with flags of their own and folded into the library. Compiled one source at a time:
# inlining in a loop depends on the other code in the same unit. With five more sources, an LSTM takes 10 % longer.
#
# -ffast-math is not among the flags: results would depend on how a loop is cut.
include(CheckCXXCompilerFlag)
include(third_party/eigen.cmake)
include(third_party/onednn.cmake)

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cpu/*.cpp)
if(sources)
  add_library(ebb_kernels_cpu OBJECT ${sources})
  ebb_warnings(ebb_kernels_cpu)
  ebb_precompile(ebb_kernels_cpu <algorithm> <cmath> <cstring> <ebb/core/kernels/device_kernel.h> <ebb/core/kernels/for_dtype.h>
                 <ebb/kernels/cpu/pieces.h>)
  target_compile_features(ebb_kernels_cpu PRIVATE cxx_std_20)
  set_target_properties(ebb_kernels_cpu PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(ebb_kernels_cpu PRIVATE ${EBB_INCLUDE_DIR})
  target_link_libraries(ebb_kernels_cpu PRIVATE Eigen3::Eigen Threads::Threads)
  target_compile_options(ebb_kernels_cpu PRIVATE -fno-math-errno -fno-trapping-math $<IF:$<CONFIG:Release>,-O3,-O2>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105593: the compiler's own AVX-512 headers, inlined through Eigen, look uninitialised to it.
    target_compile_options(ebb_kernels_cpu PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  if(EBB_CPU_ARCH)
    check_cxx_compiler_flag(-march=${EBB_CPU_ARCH} EBB_HAS_MARCH_${EBB_CPU_ARCH})
    if(EBB_HAS_MARCH_${EBB_CPU_ARCH})
      target_compile_options(ebb_kernels_cpu PRIVATE -march=${EBB_CPU_ARCH})
    else()
      message(WARNING "ebb: the compiler does not know -march=${EBB_CPU_ARCH}; CPU kernels use its default")
    endif()
  endif()

  if(TARGET ebb::onednn)
    target_compile_definitions(ebb_kernels_cpu PRIVATE EBB_HAVE_ONEDNN=1)
    target_link_libraries(ebb_kernels_cpu PRIVATE ebb::onednn)
    target_link_libraries(ebb PRIVATE $<LINK_ONLY:ebb::onednn>)  # its headers stay with the kernels
  endif()
  target_sources(ebb PRIVATE $<TARGET_OBJECTS:ebb_kernels_cpu>)
endif()
unset(sources)
