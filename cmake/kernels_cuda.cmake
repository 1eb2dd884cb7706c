# The CUDA part. Where a toolkit is found, kernels/cuda and allocator/cuda are compiled and linked; where none is,
# kernels/cuda/none.cpp stands in with the same functions. A toolkit that does not work counts as none.
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

if(EBB_HAVE_CUDA)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS
       ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/kernels/cuda/*.cpp
       ${CMAKE_CURRENT_SOURCE_DIR}/allocator/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/allocator/cuda/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/kernels/cuda/none\\.cpp$")
  add_library(ebb_kernels_cuda OBJECT ${sources})
  ebb_warnings(ebb_kernels_cuda)
  # CUDA_EXTENSIONS ON is nvcc's default; otherwise CMake would add a -std of its own after ours.
  set_target_properties(ebb_kernels_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_EXTENSIONS ON)
  target_include_directories(ebb_kernels_cuda PRIVATE ${EBB_INCLUDE_DIR})
  # Not CUDA_STANDARD or cxx_std_20: CMake 3.25.1 believes that nvcc 13 does not know C++20.
  target_compile_options(ebb_kernels_cuda PRIVATE -std=c++20)
  target_link_libraries(ebb_kernels_cuda PRIVATE CUDA::cudart_static)
  # The library was made before there were architectures to inherit; the Makefile generators insist on them.
  set_target_properties(ebb PROPERTIES CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
  target_sources(ebb PRIVATE $<TARGET_OBJECTS:ebb_kernels_cuda>)
  # Its headers stay with the kernels. Under a name of our own: an installed static ebb brings the archive along.
  add_library(ebb::cudart INTERFACE IMPORTED)
  set_target_properties(ebb::cudart PROPERTIES INTERFACE_LINK_LIBRARIES CUDA::cudart_static)
  target_link_libraries(ebb PRIVATE $<LINK_ONLY:ebb::cudart>)
  unset(sources)
else()
  target_sources(ebb PRIVATE kernels/cuda/none.cpp kernels/cuda/runtime/describe.cpp)
endif()
