# Every include reads "ebb/core/tensor/tensor.h", here and installed: <build>/include/ebb is a link to the source tree.
set(EBB_INCLUDE_DIR ${CMAKE_CURRENT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${EBB_INCLUDE_DIR})
file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${EBB_INCLUDE_DIR}/ebb SYMBOLIC)

# What each source includes is most of what the compiler reads: a few of a folder are read as one, "<folder>-<n>" with
# dashes for slashes. The preset tsan does without, as without precompiled headers.
option(EBB_UNITY_BUILD "Compile a few sources of a folder at once" ${PROJECT_IS_TOP_LEVEL})

# Adds the sources of a folder and all below it to the library. cuda/ folders belong to the CUDA part alone.
function(ebb_folder folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/${folder}/(.*/)?cuda/")
  target_sources(ebb PRIVATE ${sources})
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH group)
    cmake_path(RELATIVE_PATH group BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    string(REPLACE "/" "-" group ${group})
    math(EXPR part "${count_${group}} + 0")
    math(EXPR count_${group} "${part} + 1")
    math(EXPR part "${part} / 6")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}-${part})
  endforeach()
  set_target_properties(ebb PROPERTIES UNITY_BUILD ${EBB_UNITY_BUILD} UNITY_BUILD_MODE GROUP)
endfunction()
