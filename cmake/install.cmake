# Installs the library, the headers its users may include, and what find_package(ebb CONFIG) reads.
include(CMakePackageConfigHelpers)

set(EBB_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ebb)

install(TARGETS ebb EXPORT ebb)
install(EXPORT ebb NAMESPACE ebb:: FILE ebb-targets.cmake DESTINATION ${EBB_PACKAGE_DIR})

# Includes are written "ebb/core/tensor/tensor.h" there too. Kernels have no public header; cuda/ folders need the toolkit.
install(DIRECTORY allocator core eager graph optim models DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ebb
        FILES_MATCHING PATTERN "*.h" PATTERN "*.inc" PATTERN cuda EXCLUDE)
file(GLOB umbrella CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
install(FILES ${umbrella} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ebb)

# Whoever links a static ebb links what it stands on, a shared one brings that along. Of what was there when ebb was
# built a user needs as little as can be: spdlog is inside, CUDA's runtime is installed beside ebb (its licence allows
# it), oneDNN's library is found without its headers and CMake files.
get_target_property(type ebb TYPE)
set(EBB_STATIC_DEPENDENCIES "")
if(type STREQUAL STATIC_LIBRARY)
  if(TARGET ebb::onednn)
    list(APPEND EBB_STATIC_DEPENDENCIES onednn)
    # libdnnl.so.2 of libdnnl.so.2.7: there on a machine that runs programs but compiles none.
    file(REAL_PATH ${EBB_ONEDNN_LIBRARY} library)
    get_filename_component(library ${library} NAME)
    string(REGEX REPLACE "^([^.]+\\.so\\.[0-9]+).*" "\\1" EBB_ONEDNN_SONAME ${library})
  endif()
endif()
configure_package_config_file(cmake/ebb-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config.cmake
                              INSTALL_DESTINATION ${EBB_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/package/ebb-config-version.cmake
        DESTINATION ${EBB_PACKAGE_DIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
