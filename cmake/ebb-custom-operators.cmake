# ebb_add_custom_operators(<target> <file>...)
#
# Adds files with operators of your own (ebb/custom_operator.h) to a target. If ebb was built with CUDA and a toolkit is
# found, nvcc compiles them, whatever their extension, and they get kernels for the CPU and for GPUs: for
# CMAKE_CUDA_ARCHITECTURES, by default the architectures that ebb was built for. Otherwise the C++ compiler does, and
# they get CPU kernels only. This is a macro because a language is enabled in the scope that uses it.
macro(ebb_add_custom_operators target)
  target_sources(${target} PRIVATE ${ARGN})
  if(ebb_CUDA_ARCHITECTURES)
    if(NOT CMAKE_CUDA_COMPILER)
      include(CheckLanguage)
      check_language(CUDA)
    endif()
    if(CMAKE_CUDA_COMPILER)
      if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES ${ebb_CUDA_ARCHITECTURES})
      endif()
      enable_language(CUDA)
      # Not CUDA_STANDARD 20: CMake 3.25 believes that nvcc 13 does not know it. With extensions it adds no other -std.
      set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CUDA COMPILE_OPTIONS
                                                     "-std=c++20;--expt-relaxed-constexpr")
      set_target_properties(${target} PROPERTIES CUDA_EXTENSIONS ON)
      if(CMAKE_CUDA_ARCHITECTURES)
        set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")
      endif()
    endif()
  endif()
endmacro()
