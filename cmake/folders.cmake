# Every include reads "ebb/core/tensor/tensor.h", here and installed: <build>/include/ebb is a link to the source tree.
set(EBB_INCLUDE_DIR ${CMAKE_CURRENT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${EBB_INCLUDE_DIR})
file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${EBB_INCLUDE_DIR}/ebb SYMBOLIC)

# Adds the sources of a folder and all below it to the library. cuda/ folders belong to the CUDA part alone.
function(ebb_folder folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/${folder}/(.*/)?cuda/")
  list(FILTER sources EXCLUDE REGEX "/core/memory/serve\\.cpp$")  # a library of its own
  target_sources(ebb PRIVATE ${sources})
  ebb_unite(ebb ${sources})
endfunction()
