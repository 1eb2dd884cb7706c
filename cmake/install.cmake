# Installs the library, the headers its users may include, and what find_package(ebb CONFIG) reads.
include(CMakePackageConfigHelpers)

set(EBB_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/ebb)

install(TARGETS ebb EXPORT ebb)
install(EXPORT ebb NAMESPACE ebb:: FILE ebb-targets.cmake DESTINATION ${EBB_PACKAGE_DIR})

# Includes are written "ebb/core/tensor.h" there too. Kernels have no public header; cuda/ folders need the toolkit.
install(DIRECTORY allocator core eager graph optim models DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ebb
        FILES_MATCHING PATTERN "*.h" PATTERN cuda EXCLUDE)
file(GLOB umbrella CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
install(FILES ${umbrella} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ebb)

# Whoever links a static ebb links what it stands on; a shared one brings that along.
get_target_property(type ebb TYPE)
set(EBB_DEPENDENCIES "")
if(type STREQUAL STATIC_LIBRARY)
  if(EBB_spdlog_ORIGIN STREQUAL system)
    string(APPEND EBB_DEPENDENCIES "find_dependency(spdlog CONFIG)\n")
  endif()
  if(EBB_HAVE_CUDA)
    string(APPEND EBB_DEPENDENCIES "find_dependency(CUDAToolkit)\n")
  endif()
  if(TARGET ebb::onednn)
    string(APPEND EBB_DEPENDENCIES "include(\${CMAKE_CURRENT_LIST_DIR}/ebb-onednn.cmake)\n")
    install(FILES third_party/onednn.cmake DESTINATION ${EBB_PACKAGE_DIR} RENAME ebb-onednn.cmake)
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
