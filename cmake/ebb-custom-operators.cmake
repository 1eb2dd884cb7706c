# ebb_add_custom_operators(<target> <file>...)
#
# Adds files with operators of your own (ebb/custom_operator.h) to a target. Where ebb has been built with CUDA and a
# toolkit is found, nvcc compiles them, whatever their names end in, and they have kernels for the CPU and for GPUs: of
# CMAKE_CUDA_ARCHITECTURES, by default those that ebb was built for. Elsewhere the C++ compiler does, and they have
# kernels for the CPU. A macro: a language is enabled where it is used.
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
