#!/usr/bin/env bash
# under_limit.sh SIZE PROGRAM...: runs a program that may have so much memory: in a cgroup of its own
# (version 2 or 1, for which one has to be root; else systemd's), and where that cannot be, under a
# limit of its addresses alone, which refuses where a cgroup would kill. Says which. No swap.
set -euo pipefail

(($# >= 2)) || { echo "usage: $0 SIZE PROGRAM..., as in: $0 256M build/release/benchmarks/benchmark_pressure" >&2; exit 2; }
bytes=$(numfmt --from=iec "${1%iB}")
shift
root=/sys/fs/cgroup
group=

# In a group below the root of the hierarchy: what this shell is in stays as it is.
inside() {
  trap 'rmdir "$group"' EXIT
  (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@")
}

if grep -qw memory "$root/cgroup.subtree_control" 2>/dev/null && mkdir "$root/ebb-limit-$$" 2>/dev/null; then
  group=$root/ebb-limit-$$
  echo "$bytes" >"$group/memory.max"
  echo 0 >"$group/memory.swap.max" 2>/dev/null || true
  echo "a cgroup of version 2, $bytes bytes" >&2
  inside "$@"
elif [[ -e $root/memory/memory.limit_in_bytes ]] && mkdir "$root/memory/ebb-limit-$$" 2>/dev/null; then
  group=$root/memory/ebb-limit-$$
  echo "$bytes" >"$group/memory.limit_in_bytes"
  echo "$bytes" >"$group/memory.memsw.limit_in_bytes" 2>/dev/null || true
  echo "a cgroup of version 1, $bytes bytes" >&2
  inside "$@"
elif systemd-run --user --scope --quiet true 2>/dev/null; then
  echo "a scope of systemd, $bytes bytes" >&2
  systemd-run --user --scope --quiet -p MemoryMax="$bytes" -p MemorySwapMax=0 "$@"
else
  echo "no cgroup can be made here: a limit of $bytes bytes on addresses instead" >&2
  ulimit -v $((bytes / 1024))
  exec "$@"
fi
