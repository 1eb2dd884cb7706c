# oneDNN: CPU products; Eigen serves without it.
ebb_installed_library(oneDNN dnnl.hpp dnnl DEBIAN libdnnl-dev)
