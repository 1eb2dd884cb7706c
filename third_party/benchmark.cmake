# Google Benchmark: the micro-benchmarks.
ebb_dependency(benchmark 1.7 TARGET benchmark::benchmark DEBIAN libbenchmark-dev
               GIT https://github.com/google/benchmark.git TAG v1.8.3
               OPTIONS BENCHMARK_ENABLE_TESTING=OFF BENCHMARK_ENABLE_INSTALL=OFF BENCHMARK_ENABLE_WERROR=OFF)
