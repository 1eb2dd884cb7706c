# spdlog: logging, and fmt which comes with it. Private to the library's sources: no public header includes it.
ebb_dependency(spdlog 1.9 TARGET spdlog::spdlog DEBIAN libspdlog-dev
               GIT https://github.com/gabime/spdlog.git TAG v1.13.0
               OPTIONS SPDLOG_INSTALL=OFF)
if(EBB_spdlog_ORIGIN STREQUAL vendored)
  add_library(spdlog::spdlog_header_only INTERFACE IMPORTED)
  set_target_properties(spdlog::spdlog_header_only PROPERTIES
                        INTERFACE_INCLUDE_DIRECTORIES ${EBB_VENDORED}/spdlog
                        INTERFACE_COMPILE_DEFINITIONS SPDLOG_FMT_EXTERNAL)  # as Debian has it
endif()
# What ebb links. A static ebb takes in spdlog and fmt as headers, as does one with a downloaded copy: an installed ebb
# then does not ask its users for them.
get_target_property(ebb_type ebb TYPE)
if(NOT EBB_spdlog_ORIGIN STREQUAL system OR ebb_type STREQUAL STATIC_LIBRARY)
  set(EBB_SPDLOG $<BUILD_INTERFACE:spdlog::spdlog_header_only>)
  target_compile_definitions(ebb PRIVATE FMT_HEADER_ONLY)
else()
  set(EBB_SPDLOG spdlog::spdlog)
endif()
