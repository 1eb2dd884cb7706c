#!/usr/bin/env bash
# What ./ebb gpu-check does once everything is built: the parts in the order in which they are worth most, each into a
# log and a line of a summary. It goes on after a part that failed, and ends with 1 then.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly build=$PWD/build/${EBB_GPU_CHECK_BUILD:-release}
readonly out=${OUT:-$PWD/build/gpu-check}
readonly all=(device suites examples memcheck racecheck bench)
failed=0

# know PART...: says which of them it does not have, before anything is built for them.
know() {
  local name
  for name; do
    if [[ " ${all[*]} " != *" $name "* ]]; then
      printf "ebb: gpu-check has no part '%s'; it has: %s\n" "$name" "${all[*]}" >&2
      return 1
    fi
  done
}

if [[ ${1:-} == know ]]; then
  know "${@:2}"
  exit
fi

# What a toolkit brings may not be on the path, nor what came with PyTorch where the loader looks.
PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
if [[ -n ${EBB_CUDA_PART:-} ]]; then
  [[ -e $EBB_CUDA_PART ]] || EBB_CUDA_PART=$build/$EBB_CUDA_PART
  EBB_CUDA_PART=$(realpath "$EBB_CUDA_PART")
  export EBB_CUDA_PART
else
  # shellcheck disable=SC1090  # two lines, export NAME=FILE
  source <(python3 tests/gpu_check/libraries.py)
fi

usage() {
  cat <<TEXT
./ebb gpu-check [PART...]: builds, then all of these, or those named:

  device      which GPU, driver and toolkit there are, and what of CUDA ebb finds
  suites      the test programs with the GPU as their device, and the tests of it
  examples    the bundled trainings on it: losses beside the CPU's, memory as predicted
  memcheck    compute-sanitizer over operators and kernels, each block a cudaMalloc
  racecheck   compute-sanitizer over the kernels that use shared memory
  bench       training steps beside PyTorch, where that is installed

Logs and results are in build/gpu-check, or in \$OUT.
EBB_CUDA_PART=libebb_emulated_cuda.so tries all but the sanitizers without a GPU.
TEXT
}

# part NAME COMMAND...
part() {
  local name=$1 started=$SECONDS
  shift
  if "$@" >"$out/$name.log" 2>&1; then
    printf 'passed  %-10s %4d s\n' "$name" $((SECONDS - started)) | tee -a "$out/summary.txt"
  else
    local why
    why=$(grep -m1 -iE 'error|failed' "$out/$name.log" || tail -n 1 "$out/$name.log")
    printf 'FAILED  %-10s %4d s: %s\n' "$name" $((SECONDS - started)) "${why:0:160}" | tee -a "$out/summary.txt"
    failed=1
  fi
}

device() {
  if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader
  fi
  git rev-parse HEAD 2>/dev/null
  printf 'cuBLASLt: %s\ncuDNN: %s\n' "${EBB_CUBLASLT_LIBRARY:-where the loader finds it}" "${EBB_CUDNN_LIBRARY:-where the loader finds it}"
  "$build/examples/compare_memory" --model mlp --device cuda --epochs 1 --data examples/data/digits.csv
}

# As many at once as share a GPU well; each keeps its log. tests_cuda steers the emulated GPU, and needs it.
suites() {
  local jobs=${JOBS:-4} names without='layering|allocator'
  [[ -n ${EBB_CUDA_PART:-} ]] || without+='|cuda'
  names=$(cd "$build/tests" && ls | grep '^tests_' | grep -vE "^tests_($without)$")
  # shellcheck disable=SC2016  # $1 is the inner shell's
  printf '%s\n' $names | xargs -P "$jobs" -I{} bash -c '
    export EBB_TEST_DEVICE=cuda
    [[ $2 != tests_cuda ]] || unset EBB_TEST_DEVICE EBB_EMULATED_PAGE  # it steers the device itself
    cd "$1/tests" && timeout 400 ./"$2" "~[long]" >"$3/suite_$2.log" 2>&1
    status=$?
    printf "%s: exit %d, %s\n" "$2" "$status" "$(tail -n 2 "$3/suite_$2.log" | tr "\n" " ")"
    exit "$status"' _ "$build" {} "$out"
}

examples() {
  python3 tests/gpu_check/compare_trainings.py "$build/examples" "$out" || return 1
  # Its kernel is that of a GPU.
  [[ -n ${EBB_CUDA_PART:-} ]] || "$build/examples/custom_operator" cuda
}

# What CUDA refuses is no error here: tests ask for what it has to refuse. Nor is what lives until the process ends.
sanitized() {
  local tool=$1
  shift
  EBB_TEST_DEVICE=cuda EBB_CUDA_MEMORY=block timeout 500 compute-sanitizer --tool "$tool" --error-exitcode 9 \
    --report-api-errors no --launch-timeout 120 "$@"
}

memcheck() {
  sanitized memcheck "$build/tests/tests_ops" '~[long]' && sanitized memcheck "$build/tests/tests_optim" '~[long]'
}

# Of ebb's own kernels: libraries synchronise in ways that it does not know.
racecheck() {
  sanitized racecheck --kernel-name kns=ebb "$build/tests/tests_ops" '*value*' &&
    sanitized racecheck --kernel-name kns=ebb "$build/tests/tests_models" '~[long]'
}

bench() {
  if ! python3 -c 'import torch' 2>/dev/null; then
    echo "PyTorch is not installed: nothing to compare with"
    return 0
  fi
  EBB_BUILD=$build python3 benchmarks/gpu.py --out "$out"
}

if [[ ${1:-} == help ]]; then
  usage
  exit 0
fi
know "$@" || exit 2
mkdir -p "$out"
: >"$out/summary.txt"
chosen=("$@")
((${#chosen[@]})) || chosen=("${all[@]}")
for name in "${chosen[@]}"; do
  if [[ -n ${EBB_CUDA_PART:-} && $name =~ check$ ]]; then
    printf 'left out %s: needs a GPU\n' "$name" | tee -a "$out/summary.txt"
    continue
  fi
  part "$name" "$name"
done
exit "$failed"
