# oneDNN: CPU products where it is installed; never downloaded, since Eigen serves without it.
#
# Found by hand: the package's own CMake files demand OpenCL's headers.
find_path(EBB_ONEDNN_INCLUDE_DIR dnnl.hpp)
find_library(EBB_ONEDNN_LIBRARY dnnl)
mark_as_advanced(EBB_ONEDNN_INCLUDE_DIR EBB_ONEDNN_LIBRARY)
if(EBB_ONEDNN_INCLUDE_DIR AND EBB_ONEDNN_LIBRARY AND NOT TARGET ebb::onednn)
  add_library(ebb::onednn UNKNOWN IMPORTED)
  set_target_properties(ebb::onednn PROPERTIES IMPORTED_LOCATION ${EBB_ONEDNN_LIBRARY}
                                               INTERFACE_INCLUDE_DIRECTORIES ${EBB_ONEDNN_INCLUDE_DIR})
endif()
