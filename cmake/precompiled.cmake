# Precompiled headers: a third of the compiler's work is reading headers that nearly all files of a target include. They
# hide a missing include, which `.ci/long` finds: it builds without them.
option(EBB_PRECOMPILED_HEADERS "Read the headers that most files include once" ${PROJECT_IS_TOP_LEVEL})

# ebb_precompile(<target> <header>...): headers in angle brackets, as the target would include them.
function(ebb_precompile target)
  if(NOT EBB_PRECOMPILED_HEADERS)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  ebb_precompiled_options(${target})
endfunction()

# ebb_precompile_as(<target> <other>): shares the precompiled headers of a target with the same options.
function(ebb_precompile_as target other)
  if(NOT EBB_PRECOMPILED_HEADERS)
    return()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${other})
  ebb_precompiled_options(${target})
endfunction()

function(ebb_precompiled_options target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Lets a compiler cache see the contents of a precompiled header.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # GCC 12 treats everything from a precompiled header as ours and warns about the standard library without reason.
      target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>")
    endif()
  endif()
endfunction()
