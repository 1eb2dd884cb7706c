# Installs the library, the headers its users may include, and what find_package(ebb CONFIG) and pkg-config read.
include(CMakePackageConfigHelpers)

set(EBB_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ebb)

install(TARGETS ebb ebb_serve EXPORT ebb)
install(EXPORT ebb NAMESPACE ebb:: FILE ebb-targets.cmake DESTINATION ${EBB_PACKAGE_DIR})

# Exactly the headers that the three headers for users include, under the same names ("ebb/core/tensor/tensor.h"). Headers
# of kernels/cuda are for files that nvcc compiles.
ebb_headers_of(headers ebb.h custom_operator.h core/memory/serve.h)
foreach(header IN LISTS headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ebb/${folder})
endforeach()
unset(headers)

# A program that links a static ebb also links ebb's libraries; a shared ebb brings them along. A user needs as little
# as possible of the machine that ebb was built on: spdlog is inside, and CUDA's runtime is installed beside ebb, as its
# licence allows. Other libraries are found without their headers and CMake files, by the names that the loader uses:
# libdnnl.so.2 for libdnnl.so.2.7.
get_target_property(type ebb TYPE)
set(EBB_STATIC_LIBRARIES "")  # each as its target and its file
set(EBB_PC_PRIVATE_LIBRARIES -pthread ${CMAKE_DL_LIBS})
foreach(name IN ITEMS onednn libzip protobuf)
  if(TARGET ebb::${name})
    get_target_property(library ebb::${name} IMPORTED_LOCATION)
    get_filename_component(folder ${library} DIRECTORY)
    file(REAL_PATH ${library} library)
    get_filename_component(library ${library} NAME)
    string(REGEX REPLACE "^([^.]+\\.so\\.[0-9]+).*" "\\1" soname ${library})
    if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND EBB_PC_PRIVATE_LIBRARIES -L${folder})
    endif()
    list(APPEND EBB_PC_PRIVATE_LIBRARIES -l:${soname})
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND EBB_STATIC_LIBRARIES ${name} ${soname})
    endif()
  endif()
endforeach()
configure_package_config_file(cmake/ebb-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config.cmake
                              INSTALL_DESTINATION ${EBB_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config-version.cmake
              cmake/ebb-custom-operators.cmake
        DESTINATION ${EBB_PACKAGE_DIR})

# For Makefiles: `pkg-config --cflags --libs ebb`. With a static ebb it names ebb's libraries too; a shared one has
# them.
set(EBB_PC_FLAGS "")
if(EBB_POISON)
  set(EBB_PC_FLAGS -DEBB_POISON=1)
endif()
set(EBB_PC_LIBRARIES "")
list(TRANSFORM EBB_PC_PRIVATE_LIBRARIES REPLACE "^([^-].*)" "-l\\1")
if(type STREQUAL STATIC_LIBRARY)
  set(EBB_PC_LIBRARIES ${EBB_PC_PRIVATE_LIBRARIES})
  set(EBB_PC_PRIVATE_LIBRARIES "")
  if(EBB_HAVE_CUDA)  # the program finds the CUDA part there
    list(APPEND EBB_PC_LIBRARIES "-Wl,-rpath,\${libdir}/ebb")
  endif()
endif()
list(JOIN EBB_PC_LIBRARIES " " EBB_PC_LIBRARIES)
list(JOIN EBB_PC_PRIVATE_LIBRARIES " " EBB_PC_PRIVATE_LIBRARIES)
# Relative to this file, so that the installation may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE EBB_PC_PREFIX)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE EBB_PC_LIBDIR)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE EBB_PC_INCLUDEDIR)
configure_file(cmake/ebb.pc.in ${CMAKE_CURRENT_BINARY_DIR}/package/ebb.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/ebb.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Licences of the code inside: of what this tree has, and of headers where they are Debian's.
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES third_party/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME third_party.md)
foreach(name IN ITEMS httplib uplot)
  install(FILES third_party/${name}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.${name})
endforeach()
foreach(package IN ITEMS libeigen3-dev libfmt-dev libspdlog-dev nlohmann-json3-dev)
  install(FILES /usr/share/doc/${package}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME LICENSE.${package}
          OPTIONAL)
endforeach()
