# Installs ebb into an empty prefix, compiles the tour and all installed headers against it, and runs the tour. What
# ebb was built with is not to be found by its user's CMake.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${output}\nfailed (${failed}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work}/prefix ${work}/consumer)
run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix --config ${config})

set(flags "")
if(sanitize)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=${sanitize})
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/consumer -G ${generator}
    -DCMAKE_BUILD_TYPE=${config} -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_CXX_COMPILER_LAUNCHER=${launcher} ${flags}
    -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
    "-DCMAKE_PREFIX_PATH=${work}/prefix;${prefix_path}")
run(${CMAKE_COMMAND} --build ${work}/consumer --config ${config})

# In a folder of its own: the tour writes files.
file(MAKE_DIRECTORY ${work}/consumer/run)
execute_process(COMMAND ${work}/consumer/tour ${data} WORKING_DIRECTORY ${work}/consumer/run RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "the tour ended with ${failed}")
endif()
