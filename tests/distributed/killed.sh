#!/usr/bin/env bash
# tests/distributed/killed.sh TESTS MPIRUN [CASE...]: in jobs of two ranks one kills itself at a place of a step or of a
# save. The launcher ends each job and says so, all processes are gone within ten seconds, and the last checkpoint is
# whole. TESTS is tests_distributed, MPIRUN a command; a CASE is "eager copies backward", without any all are run.
set -euo pipefail
tests=$(realpath "$1") work=$(mktemp -d)
read -r -a mpirun <<<"$2"
shift 2
trap 'rm -rf "$work"' EXIT
export EBB_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$work"

# Prints the processes of a job that has ended: its ranks work in this folder.
left() {
  local process
  for process in /proc/[0-9]*; do
    [[ ! $process/cwd -ef $work || ! $process/exe -ef $tests ]] || echo "${process#/proc/}"
  done
}

(($# > 0)) || set -- {eager,graph}" "{copies,shares}" "{loading,forward,backward,update,writing,replacing,replaced,closing}
for case in "$@"; do
  rm -f killed*
  status=0
  timeout 60 "${mpirun[@]}" -n 2 "$tests" '[.killed]' -c "$case" >log 2>&1 || status=$?
  seconds=$(($(date +%s) - $(stat -c %Y killed* | sort | tail -1))) # since it was killed, or a little more
  echo "   $case: $seconds s"
  if ((status == 0 || seconds > 10)) || [[ -n $(left) ]] || ! grep -q 'signal 9' log; then
    tail -30 log
    echo "   ends with $status, after it processes $(left)" && exit 1
  fi
  "$tests" '[.killed]' -c "$case" >log || { cat log && exit 1; }
done
