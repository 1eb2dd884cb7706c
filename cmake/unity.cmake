# What each source includes is most of what the compiler reads: a few sources of a folder are read as one, so
# that what two of them call alike in anonymous namespaces meets. The preset tsan does without, as without precompiled
# headers.
option(EBB_UNITY_BUILD "Compile a few sources of a folder at once" ${PROJECT_IS_TOP_LEVEL})

# ebb_unite(<target> <source>...): each six of a folder are one, whose object is named after the folder:
# unity_<folder, with dashes for slashes>-<n>.
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
