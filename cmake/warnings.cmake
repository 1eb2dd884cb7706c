# The warnings that our own host code is held to; what comes from third_party/ is included as SYSTEM and left alone.
function(ebb_warnings target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion>"
                                           "$<$<AND:$<BOOL:${EBB_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105329: sees overlapping copies inside the standard library wherever two strings are added.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND EBB_SANITIZE)
    # GCC bug 105562: with the address sanitizer, std::regex of the standard library looks uninitialised.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # Loops marked for vectors may divide integers, and & of two bools saves a branch.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-pass-failed;-Wno-bitwise-instead-of-logical>")
  endif()
endfunction()
