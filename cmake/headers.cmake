# Finds the headers of ebb that a file includes, by its #include lines, and by its lists of operators (EBB_FAMILY).

# ebb_headers_of(<result> <file>...): the files and all headers of ebb that they include, directly or not; paths below
# the source folder, sorted. CMake runs again when one of them changes.
function(ebb_headers_of result)
  set(found ${ARGN})
  set(unread ${found})
  while(unread)
    list(POP_FRONT unread header)
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^ *# *(include|define EBB_FAMILY) \"ebb/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^[^\"]*\"ebb/([^\"]+)\".*" "\\1" included "${line}")
      if(NOT included IN_LIST found)
        list(APPEND found ${included})
        list(APPEND unread ${included})
      endif()
    endforeach()
  endwhile()
  list(SORT found)
  list(TRANSFORM found PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(${result} ${found} PARENT_SCOPE)
endfunction()
