#!/usr/bin/env bash
# tests/cuda/toolkits.sh FOLDER INCLUDE: the host's sources of the CUDA part compile with the headers of CUDA 12: those
# of the oldest toolkit that ebb takes, and of the last. FOLDER keeps them; INCLUDE is a build's include folder.
set -euo pipefail
folder=$1 include=$2 root=$(dirname "${BASH_SOURCE[0]}")/../..

# headers TOOLKIT CUDNN: from NVIDIA's packages for Python, whose libraries are not kept
headers() {
  [[ ! -d $folder/$1 ]] || return 0
  rm -rf "$folder/new"
  python3 -m pip -q install --no-deps --no-compile --target "$folder/new" \
    nvidia-{cuda-runtime,cuda-nvcc,cuda-nvrtc,cublas}-cu12=="$1.*" nvidia-cudnn-cu12=="$2.*"
  find "$folder/new" -type f -not -path '*/include/*' -delete
  mv "$folder/new" "$folder/$1"
}

headers 12.5 9.1
headers 12.9 9.14
for toolkit in 12.5 12.9; do
  readarray -t headers < <(printf -- '-isystem\n%s\n' "$folder/$toolkit"/nvidia/*/include)
  find "$root"/kernels/cuda "$root"/allocator/cuda -name '*.cpp' -print0 |
    xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "${CXX:-g++}" -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Werror \
      -DEBB_VERSION='""' -DEBB_CUDA_FOLDER='""' -fsyntax-only -I "$include" "${headers[@]}"
  echo "   CUDA $toolkit"
done
