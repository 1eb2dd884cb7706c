#!/usr/bin/env bash
# tests/install/package.sh PACKAGE PART: takes the archive and the Debian package of build PACKAGE apart, and builds the
# tour with each. For every instruction set that this machine has, the loader takes that library, the library finds its
# CUDA part (PART is an emulated one), and the tour's numbers are the same.
set -euo pipefail
package=$(realpath "$1") part=$(realpath "$2") here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly loader=/lib64/ld-linux-x86-64.so.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work"/{archive,debian}
tar -xzf "$package"/ebb-*.tar.gz -C "$work/archive" --strip-components=1
dpkg-deb -x "$package"/ebb_*.deb "$work/debian"

for prefix in "$work/archive" "$work/debian/usr"; do
  cmake -S "$here/consumer" -B "$prefix/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$prefix/build" >/dev/null
  mkdir -p "$prefix/lib/ebb"
  cp "$part" "$prefix/lib/ebb/libebb_cuda.so"
  for level in v2 v3 v4; do
    if ! "$loader" --help | grep -q "x86-64-$level (supported"; then
      echo "   x86-64-$level: left out, this machine lacks it"
      continue
    fi
    (cd "$work" && LD_DEBUG=libs EBB_EMULATED_DEVICES=0 "$loader" --glibc-hwcaps-mask "x86-64-$level" \
      "$prefix/build/tour" "$here/../../examples/data") >"$work/out" 2>"$work/log" || { tail "$work/log" && exit 1; }
    library=$(sed -n 's/.*calling init: \(.*libebb\.so.*\)/\1/p' "$work/log")
    expected=$prefix/lib/glibc-hwcaps/x86-64-$level/libebb.so.0.1
    [[ $level != v2 ]] || expected=$prefix/lib/libebb.so.0.1
    [[ $library == "$expected" ]] || { echo "with x86-64-$level $library is loaded" && exit 1; }
    grep -q 'the driver finds no device' "$work/log" || { echo "$library does not find its CUDA part" && exit 1; }
    # Three digits of each number: an instruction set rounds sums in its own way. No line with seconds.
    sed '/steps in/d' "$work/out" | awk '{ for (i = 1; i <= NF; i++) if ($i + 0) $i = sprintf("%.3g", $i) } 1' >"$work/numbers"
    [[ -e $work/expected ]] || cp "$work/numbers" "$work/expected"
    diff "$work/expected" "$work/numbers"
    echo "   ${library#"$work"/}"
  done
done
