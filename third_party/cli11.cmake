# CLI11: arguments of the example programs and benchmarks.
ebb_dependency(CLI11 2.1 TARGET CLI11::CLI11 DEBIAN libcli11-dev
               GIT https://github.com/CLIUtils/CLI11.git TAG v2.3.2
               OPTIONS CLI11_BUILD_TESTS=OFF CLI11_BUILD_EXAMPLES=OFF CLI11_BUILD_DOCS=OFF CLI11_INSTALL=OFF)
