# Eigen: CPU products where oneDNN is not installed. Nothing outside kernels/cpu includes it.
ebb_dependency(Eigen3 3.4 TARGET Eigen3::Eigen DEBIAN libeigen3-dev
               GIT https://gitlab.com/libeigen/eigen.git TAG 3.4.0
               OPTIONS EIGEN_BUILD_DOC=OFF EIGEN_BUILD_PKGCONFIG=OFF BUILD_TESTING=OFF)
