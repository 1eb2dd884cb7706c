# The CPU kernels: the only code that sees Eigen and, since Eigen's alignment depends on it, the only code compiled for
# one instruction set. Built apart with flags of their own and folded into the library. Compiled one source at a time:
# inlining in a loop depends on the other code in the same unit. With five more sources, an LSTM takes 10 % longer.
#
# For each further instruction set in EBB_CPU_ARCH, such as x86-64-v3, the shared library is linked once more, into
# glibc-hwcaps/x86-64-v3. Where a machine has the set, glibc's loader looks there before the folder above.
#
# -ffast-math is not among the flags: results would depend on how a loop is cut.
include(CheckCXXCompilerFlag)
include(third_party/eigen.cmake)
include(third_party/onednn.cmake)

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cpu/*.cpp)

# ebb_kernels_cpu(<target> <instruction set>): the kernels as an object library.
function(ebb_kernels_cpu target arch)
  add_library(${target} OBJECT ${sources})
  ebb_warnings(${target})
  ebb_precompile(${target} <algorithm> <cmath> <cstring> <ebb/core/kernels/device_kernel.h> <ebb/core/kernels/for_dtype.h>
                 <ebb/kernels/cpu/pieces.h>)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE ${EBB_INCLUDE_DIR})
  target_link_libraries(${target} PRIVATE Eigen3::Eigen Threads::Threads $<TARGET_NAME_IF_EXISTS:ebb::onednn>)
  target_compile_definitions(${target} PRIVATE $<$<TARGET_EXISTS:ebb::onednn>:EBB_HAVE_ONEDNN=1>)
  target_compile_options(${target} PRIVATE -fno-math-errno -fno-trapping-math $<IF:$<CONFIG:Release>,-O3,-O2>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105593: the compiler's own AVX-512 headers, inlined through Eigen, look uninitialised to it.
    target_compile_options(${target} PRIVATE -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
  if(arch)
    check_cxx_compiler_flag(-march=${arch} EBB_HAS_MARCH_${arch})
    if(EBB_HAS_MARCH_${arch})
      target_compile_options(${target} PRIVATE -march=${arch})
    else()
      message(WARNING "ebb: the compiler does not know -march=${arch}; CPU kernels use its default")
    endif()
  endif()
endfunction()

set(further ${EBB_CPU_ARCH})
list(POP_FRONT further first)
ebb_kernels_cpu(ebb_kernels_cpu "${first}")
target_sources(ebb PRIVATE $<TARGET_OBJECTS:ebb_kernels_cpu>)
if(TARGET ebb::onednn)
  target_link_libraries(ebb PRIVATE $<LINK_ONLY:ebb::onednn>)  # its headers stay with the kernels
endif()
get_target_property(type ebb TYPE)
if(further AND NOT type STREQUAL SHARED_LIBRARY)
  message(FATAL_ERROR "ebb: a static ebb has one instruction set: EBB_CPU_ARCH=${first}, or BUILD_SHARED_LIBS=ON")
endif()
foreach(arch IN LISTS further)
  ebb_kernels_cpu(ebb_kernels_cpu_${arch} ${arch})
  add_library(ebb_${arch} SHARED $<TARGET_OBJECTS:ebb> $<TARGET_OBJECTS:ebb_kernels_cpu_${arch}>)
  target_link_libraries(ebb_${arch} PRIVATE $<GENEX_EVAL:$<TARGET_PROPERTY:ebb,LINK_LIBRARIES>>)
  set_target_properties(ebb_${arch} PROPERTIES OUTPUT_NAME ebb
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/glibc-hwcaps/${arch})
  install(TARGETS ebb_${arch} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/glibc-hwcaps/${arch} NAMELINK_SKIP)
endforeach()
unset(sources)
