# Build type, sanitizers, compiler cache and linker of all targets of this build.

get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)  # of this folder and those below it: a project that has ebb in a folder keeps its own
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_EXTENSIONS OFF)

  find_program(EBB_CCACHE ccache)
  mark_as_advanced(EBB_CCACHE)
  if(EBB_CCACHE)
    # ccache caches files with a precompiled header only with this sloppiness. In depend mode it hashes the headers that
    # the compiler read: the preprocessed text of a precompiled header lacks its macros.
    set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${EBB_CCACHE})
    foreach(language IN ITEMS CXX CUDA)
      if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
      endif()
    endforeach()
  endif()

  find_program(EBB_MOLD mold)
  find_program(EBB_LLD ld.lld)
  mark_as_advanced(EBB_MOLD EBB_LLD)
  if(EBB_MOLD AND (CMAKE_CXX_COMPILER_ID MATCHES Clang OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1))
    add_link_options(-fuse-ld=mold)
  elseif(EBB_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()

if(EBB_SANITIZE)
  set(sanitize -fsanitize=${EBB_SANITIZE} -fno-omit-frame-pointer)
  if(EBB_SANITIZE MATCHES undefined)
    list(APPEND sanitize -fno-sanitize-recover=undefined)
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitize}>")
  add_link_options(-fsanitize=${EBB_SANITIZE})
endif()
