# spdlog: logging, and fmt which comes with it. Private to the library's sources: no public header includes it.
ebb_dependency(spdlog 1.9 TARGET spdlog::spdlog DEBIAN libspdlog-dev
               GIT https://github.com/gabime/spdlog.git TAG v1.13.0
               OPTIONS SPDLOG_INSTALL=OFF)
# What ebb links. A downloaded copy goes in as headers, so that an installed ebb does not ask for it.
if(EBB_spdlog_ORIGIN STREQUAL download)
  set(EBB_SPDLOG $<BUILD_INTERFACE:spdlog::spdlog_header_only>)
else()
  set(EBB_SPDLOG spdlog::spdlog)
endif()
