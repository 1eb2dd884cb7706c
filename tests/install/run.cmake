# Installs ebb into an empty prefix. Compiles and runs the tour with a user's operator against it, then a program with
# the flags from pkg-config. The user's CMake must do without the packages that ebb was built with.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${output}\nfailed (${failed}): ${command}")
  endif()
endfunction()

file(REMOVE_RECURSE ${work}/prefix ${work}/consumer)
run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix --config ${config})

# The installed headers are exactly the ones that the three headers for users include, as the compiler sees it.
file(WRITE ${work}/toolkit/cuda_runtime.h "")
file(WRITE ${work}/headers.cpp "#include <ebb/ebb.h>\n#include <ebb/custom_operator.h>\n#include <ebb/core/memory/serve.h>\n")
execute_process(COMMAND ${compiler} -std=c++20 -DEBB_CUDA_KERNELS=1 -I${work}/prefix/include -I${work}/toolkit
                        -M ${work}/headers.cpp
                RESULT_VARIABLE failed OUTPUT_VARIABLE seen ERROR_VARIABLE errors)
if(failed)
  message(FATAL_ERROR "a public header is not installed: ${errors}")
endif()
string(REGEX MATCHALL "[^ \\\n]+" seen "${seen}")
file(GLOB_RECURSE installed ${work}/prefix/include/*)
list(LENGTH installed count)
if(count LESS 100)
  message(FATAL_ERROR "only ${count} headers are installed")
endif()
list(REMOVE_ITEM installed ${seen})
if(installed)
  list(JOIN installed " " installed)
  message(FATAL_ERROR "installed, though no public header includes them: ${installed}")
endif()

set(flags "")
if(sanitize)
  set(flags -DCMAKE_CXX_FLAGS=-fsanitize=${sanitize})
endif()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/consumer -G ${generator}
    -DCMAKE_BUILD_TYPE=${config} -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_CXX_COMPILER_LAUNCHER=${launcher} ${flags}
    -DCMAKE_DISABLE_FIND_PACKAGE_spdlog=ON -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
    -DCMAKE_CUDA_COMPILER=CMAKE_CUDA_COMPILER-NOTFOUND
    "-DCMAKE_PREFIX_PATH=${work}/prefix;${prefix_path}")
run(${CMAKE_COMMAND} --build ${work}/consumer --config ${config})

# The project of docs/building.md with the operator of docs/guide/own.md, as they stand there.
set(project "")
foreach(page IN ITEMS building guide/own)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/../../docs/${page}.md text)
  if(NOT text MATCHES "```cmake\n([^`]*)```")
    message(FATAL_ERROR "docs/${page}.md has no lines of CMake")
  endif()
  string(APPEND project "${CMAKE_MATCH_1}")
endforeach()
file(WRITE ${work}/mine/CMakeLists.txt "${project}")
configure_file(${build}/tests/docs/ebb_docs/own_3.inc ${work}/mine/swish.cpp COPYONLY)
file(WRITE ${work}/mine/mine.cpp "#include <ebb/ebb.h>\nebb::Tensor swish(const ebb::Operand& x, double beta);\n"
     "int main() { return swish(ebb::ones({1}), 0).item<float>() != 0.5f; }\n")
run(${CMAKE_COMMAND} --fresh -S ${work}/mine -B ${work}/mine/build -G ${generator} -DCMAKE_BUILD_TYPE=${config}
    -DCMAKE_CXX_COMPILER=${compiler} ${flags} "-DCMAKE_PREFIX_PATH=${work}/prefix;${prefix_path}")
run(${CMAKE_COMMAND} --build ${work}/mine/build --config ${config})
run(${work}/mine/build/mine)

# The tour writes files, so it runs in a folder of its own.
file(MAKE_DIRECTORY ${work}/consumer/run)
function(run_tour)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${ARGN} ${work}/consumer/tour ${data} RESULT_VARIABLE failed
                  WORKING_DIRECTORY ${work}/consumer/run ERROR_VARIABLE errors)
  if(failed)
    message(FATAL_ERROR "the tour ended with ${failed}: ${errors}")
  endif()
  set(errors "${errors}" PARENT_SCOPE)
endfunction()
run_tour()

# Without a GPU Device::best() is the CPU, silently. Where there should be a GPU, it warns with the reason.
function(expect_warning text)
  if(NOT errors MATCHES "the CPU is used instead of CUDA: [^\n]*${text}")
    message(FATAL_ERROR "nobody has said '${text}', but: ${errors}")
  endif()
endfunction()
run_tour(EBB_CUDA_PART=nowhere.so)
expect_warning("EBB_CUDA_PART names nowhere.so")
# ebb finds its CUDA part beside the installed ebb, whatever folder was configured.
file(MAKE_DIRECTORY ${work}/prefix/${libdir}/ebb)
file(COPY_FILE ${part} ${work}/prefix/${libdir}/ebb/libebb_cuda.so)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${work}/consumer)
run(${CMAKE_COMMAND} --build ${work}/consumer --config ${config})
set(found "")
if(sanitize MATCHES address)  # its dlopen ignores a program's run path
  set(found LD_LIBRARY_PATH=${work}/prefix/${libdir}/ebb)
endif()
run_tour(${found} EBB_EMULATED_DRIVER=11040)
expect_warning("the driver here is for CUDA 11.4")
run_tour(${found} EBB_EMULATED_DEVICES=0)
expect_warning("the driver finds no device")
run_tour(${found} EBB_EMULATED_DRIVER=0)
if(errors MATCHES "CPU is used")
  message(FATAL_ERROR "without a driver nobody misses CUDA: ${errors}")
endif()

# A Makefile with pkg-config, for the build's compiler and for Clang, where both tools exist.
if(pkg_config AND make)
  set(compilers ${compiler})
  if(clang AND NOT sanitize)
    list(APPEND compilers ${clang})
  endif()
  set(sanitizers "")
  if(sanitize)
    set(sanitizers -fsanitize=${sanitize})
  endif()
  foreach(one IN LISTS compilers)
    get_filename_component(name ${one} NAME)
    set(folder ${work}/makefile/${name})
    file(REMOVE_RECURSE ${folder})
    file(MAKE_DIRECTORY ${folder})
    run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${work}/prefix/${libdir}/pkgconfig
        ${make} -C ${folder} -f ${CMAKE_CURRENT_LIST_DIR}/consumer/Makefile SOURCES=${CMAKE_CURRENT_LIST_DIR}/consumer
        "CXX=${launcher} ${one}" "FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Werror ${sanitizers}")
    run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${work}/prefix/${libdir} ${folder}/program)
    if(shared)
      get_filename_component(shared_folder ${shared} DIRECTORY)
      run(${one} ${folder}/program.o ${shared} -Wl,-rpath,${shared_folder} -o ${folder}/program_shared)
      run(${folder}/program_shared)
    endif()
  endforeach()
endif()
