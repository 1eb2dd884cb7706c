# The warnings that our own host code is held to; what comes from third_party/ is included as SYSTEM and left alone.
function(ebb_warnings target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion>"
                                           "$<$<AND:$<BOOL:${EBB_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>")
endfunction()
