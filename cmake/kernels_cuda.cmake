# The CUDA part, libebb_cuda.so: kernels/cuda and allocator/cuda, where a toolkit is found. ebb loads it when a CUDA
# device is first asked for, so nothing else depends on CUDA: not ebb's users, nor a program that stays on the CPU. What
# ebb itself needs of kernels/cuda is in host/, without any header of CUDA's. A toolkit that does not work counts as none.
set(EBB_CUDA AUTO CACHE STRING "CUDA: AUTO (where a toolkit is found), ON or OFF")
set_property(CACHE EBB_CUDA PROPERTY STRINGS AUTO ON OFF)
set(EBB_CUDA_ARCHITECTURES 75 80 86 89 90 CACHE STRING
    "Compute capabilities to compile for; PTX is added for the last one")

set(EBB_HAVE_CUDA OFF)
if(EBB_CUDA)
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
    find_package(CUDAToolkit QUIET)
    if(TARGET CUDA::cudart_static)
      set(EBB_HAVE_CUDA ON)
    endif()
  endif()
  if(EBB_HAVE_CUDA)
    list(JOIN EBB_CUDA_ARCHITECTURES " " architectures)
    message(STATUS "ebb: CUDA ${CMAKE_CUDA_COMPILER_VERSION}, for ${architectures}")
  elseif(EBB_CUDA STREQUAL AUTO)
    message(STATUS "ebb: built without CUDA (no toolkit that works was found)")
  else()
    message(FATAL_ERROR "ebb: EBB_CUDA=ON, but no CUDA toolkit that works was found")
  endif()
endif()

# The sources of the part: those of ours that see CUDA, and what they need of the rest, of which the part has its own.
function(ebb_cuda_sources result)
  set(root ${PROJECT_SOURCE_DIR})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/kernels/cuda/*.cu ${root}/kernels/cuda/*.cpp
                                              ${root}/allocator/cuda/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/kernels/cuda/host/(forward|load)\\.cpp$")
  list(APPEND sources ${root}/core/base/error.cpp ${root}/core/base/shape.cpp ${root}/core/kernels/kernel.cpp)
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/host/*.cpp)
target_sources(ebb PRIVATE ${sources})
target_link_libraries(ebb PRIVATE ${CMAKE_DL_LIBS})
# What part and library have to agree on: the headers of all that crosses the border between them,
# and those that they include.
file(GLOB_RECURSE border CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
     core/kernels/*.h core/kernels/*.inc kernels/cuda/host/*.h optim/kernels/*.h optim/kernels/*.inc)
ebb_headers_of(border ${border} core/device/backend.h kernels/cuda/kernels.inc)
set(digests "")
foreach(header IN LISTS border)
  file(SHA256 ${CMAKE_CURRENT_SOURCE_DIR}/${header} digest)
  string(APPEND digests ${digest})
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 12 digest)
set(EBB_STAMP "${PROJECT_VERSION}-${digest}")
set_source_files_properties(kernels/cuda/host/stamp.cpp PROPERTIES COMPILE_DEFINITIONS EBB_STAMP="${EBB_STAMP}")
set_source_files_properties(kernels/cuda/host/load.cpp PROPERTIES
                            COMPILE_DEFINITIONS EBB_CUDA_FOLDER="${CMAKE_INSTALL_FULL_LIBDIR}/ebb")

set(built_for "")
if(EBB_HAVE_CUDA)
  set(built_for ${CMAKE_CUDA_ARCHITECTURES})
  ebb_cuda_sources(sources)
  set(kernels ${sources})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  list(FILTER sources EXCLUDE REGEX "\\.cu$")
  # What the host's compiler compiles is a library of its own: the flags for C++20 differ.
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
    if(EXISTS ${EBB_VENDORED}/cudnn)
      target_include_directories(${target} SYSTEM PRIVATE ${EBB_VENDORED}/cudnn)
    endif()
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_EXTENSIONS ON
                          CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endforeach()
  set_target_properties(ebb_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS ebb_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ebb)
endif()
unset(sources)
unset(border)
unset(digests)
unset(digest)
set(ebb_CUDA_ARCHITECTURES "${built_for}" CACHE INTERNAL "what ebb_add_custom_operators() compiles for")
unset(built_for)
