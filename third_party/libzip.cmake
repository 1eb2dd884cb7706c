# libzip: .npz files, which without it are an error that names it.
ebb_installed_library(libzip zip.h zip DEBIAN libzip-dev)
