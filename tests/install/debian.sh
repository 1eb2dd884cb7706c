#!/usr/bin/env bash
# tests/install/debian.sh PACKAGE STATIC: in a bare Debian, without ebb's sources and their needs, installs the Debian
# package and the archive of build PACKAGE and the tree of the static build STATIC, and builds and runs the tour.
set -euo pipefail
package=$(realpath "$1") static=$(realpath "$2") here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
((EUID == 0)) || { echo "   left out: a bare Debian needs root" && exit; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root

# quietly COMMAND...: shows the end of its output only when it fails.
quietly() { "$@" >"$work/log" 2>&1 || { tail -20 "$work/log" && exit 1; }; }
inside() { chroot "$root" "$@"; }
install() { quietly inside apt-get -q -y install --no-install-recommends "$@"; }
configure() { inside cmake --fresh -S /ebb/install/consumer -B /ebb/build -DCMAKE_PREFIX_PATH="$1"; }
# use PREFIX: the tour runs with ebb there, without a word about CUDA.
use() {
  quietly configure "$1"
  quietly inside cmake --build /ebb/build
  local words
  words=$(inside /ebb/build/tour /ebb/data 2>&1 >/dev/null)
  [[ -z $words ]] || { echo "$words" && exit 1; }
}

command -v debootstrap >/dev/null || quietly apt-get -q -y install --no-install-recommends debootstrap
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $release" 'Label: Debian')
quietly debootstrap --variant=minbase --include=g++,cmake,make "$release" "$root" "${mirror%%$'\n'*}"
mkdir -p "$root/ebb/archive"
cp -r "$here" "$here/../../examples/data" "$root/ebb"
cp "$package"/ebb_*.deb "$root/ebb/ebb.deb"
tar -xzf "$package"/ebb-*.tar.gz -C "$root/ebb/archive" --strip-components=1
quietly cmake --install "$static" --prefix "$root/ebb/static"

install /ebb/ebb.deb
use /usr
quietly inside g++ -std=c++20 /ebb/install/consumer/program.cpp -lebb -o /ebb/program
loaded=$(inside env LD_DEBUG=libs /ebb/program 2>&1 | sed -n 's/.*calling init: \(.*libebb.*\)/\1/p')
echo "   the Debian package works with $loaded"
depends=$(inside dpkg-query -W -f '${Depends}' ebb | sed 's/ ([^)]*)//g; s/,//g')
quietly inside apt-get -q -y purge --autoremove ebb

configure /ebb/static >"$work/log" 2>&1 && { echo "a static ebb does not miss its libraries" && exit 1; }
missing=$(tr -s '\n ' ' ' <"$work/log" | sed -n 's/.*Debian: apt-get install \([^)]*\)).*/\1/p')
[[ -n $missing ]] || { cat "$work/log" && exit 1; }
# shellcheck disable=SC2086
install $missing
use /ebb/static
echo "   the static tree works with $missing"

# shellcheck disable=SC2086
install $depends
use /ebb/archive
echo "   the archive works with $depends"
