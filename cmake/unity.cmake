# Unity build: a few sources of a folder are compiled as one, since headers are most of what the compiler reads. Names
# in anonymous namespaces of one folder may therefore collide. `.ci/long` builds source by source.
option(EBB_UNITY_BUILD "Compile a few sources of a folder at once" ${PROJECT_IS_TOP_LEVEL})

# ebb_unite(<target> <source>...): unites sources of a folder, six at a time, as unity_<folder, / as ->-<n>.
function(ebb_unite target)
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH group)
    cmake_path(RELATIVE_PATH group BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(REPLACE "/" "-" group ${group})
    math(EXPR count_${group} "${count_${group}} + 1")
    math(EXPR part "(${count_${group}} - 1) / 6")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}-${part})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${EBB_UNITY_BUILD} UNITY_BUILD_MODE GROUP)
endfunction()
