#!/bin/sh
# check.sh COMPILER INCLUDE SOURCE: each line of the source that ends in "// refused: TEXT" does not
# compile, no other is in error, and the compiler says each TEXT, also that of lines that end in
# "// said: TEXT", whose place it does not tell.
compiler=$1 include=$2 source=$3
said=$("$compiler" -std=c++20 -fsyntax-only -I"$include" "$source" 2>&1)
problems=$(
  grep -n "// refused: " "$source" | while IFS= read -r line; do
    number=${line%%:*}
    why=${line#*// refused: }
    case $said in *"$source:$number:"*) ;; *) echo "line $number compiles" ;; esac
    case $said in *"$why"*) ;; *) echo "line $number: nobody says '$why'" ;; esac
  done
  sed -n 's|.*// said: ||p' "$source" | while IFS= read -r why; do
    case $said in *"$why"*) ;; *) echo "nobody says '$why'" ;; esac
  done
  printf '%s\n' "$said" | grep -o "$source:[0-9]*:[0-9]*: error" | cut -d: -f2 | sort -u |
    while read -r number; do
      sed -n "${number}p" "$source" | grep -q "// refused: " || echo "line $number does not compile"
    done
)
[ -z "$problems" ] && exit 0
printf '%s\n%s\n' "$problems" "$said"
exit 1
