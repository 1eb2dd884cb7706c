#!/usr/bin/env bash
# Runs the commands of README and docs, which are the lines that begin with four blanks.
#
#     tests/docs/commands.sh BUILD        those of the bundled programs, from that build
#     tests/docs/commands.sh BUILD long   those that build, and then a user's project
# shellcheck disable=SC2016 # sed and make have their own $ and `
set -euo pipefail
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(realpath "$1") wanted=${2:-programs} work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NO_COLOR=1 HOME=$work

# Prints the commands of one kind. Stops at a command of no kind.
commands() {
  local line kind
  (cd "$tree" && awk 'FNR == 1 { fenced = 0 } /^ *```/ { fenced = !fenced } !fenced && sub(/^    /, "")' \
    README.md docs/*.md docs/guide/*.md) | while read -r line; do
    case $line in
      build/dev/examples/*) kind=programs ;;
      "./ebb test"* | "mpirun -n 4 build/dev/examples/data_parallel"* | "cmake --workflow --preset package"*) kind=tested ;; # by .ci/run, .ci/long and tests/examples
      ./ebb* | "cmake --preset"*) kind=long ;;
      "cmake -B build "* | PKG_CONFIG_PATH=*) kind=project ;;
      *) echo "no test runs '$line'" >&2 && return 1 ;;
    esac
    [[ $kind != "$1" ]] || printf '%s\n' "$line"
  done
}

# Runs the commands of one kind in a folder.
run() {
  local line all
  all=$(commands "$1")
  [[ -n $all ]] || { echo "there are no commands of the kind '$1'" >&2 && return 1; }
  while read -r line; do
    echo "\$ $line"
    (cd "$2" && bash -euo pipefail -c "$line") </dev/null
  done <<<"$all"
}

mkdir -p "$work/build" "$work/mine"
if [[ $wanted == programs ]]; then
  ln -s "$build" "$work/build/dev"
  run programs "$work"
else
  run long "$tree"
  sed -n '/^```cmake$/,/^```$/{/^```/d;p}' "$tree/docs/building.md" >"$work/mine/CMakeLists.txt"
  sed -n '/^```cpp$/,/^```$/{/^```/d;p;};/^int main/,/^}/{/^}/q}' "$tree/README.md" >"$work/mine/mine.cpp"
  printf 'mine:\n\t%s\n' "$(grep -o '$(CXX) [^`]*' "$tree/docs/building.md")" >"$work/mine/Makefile"
  run project "$work/mine"
fi
