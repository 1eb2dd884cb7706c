#!/usr/bin/env python3
"""parameters.py CUDA_PART EMULATED_PART: nvcc and the host's compiler lay out each kernel's arguments alike.

A launch copies as many bytes from each argument as the kernel's PTX declares. nvcc 13.0 declares more than the host's
compiler has where a member is [[no_unique_address]]. The host's sizes stand in names of the emulated part (shim/).
Kernels of CUB are left out: CUB itself launches them.
"""

import re
import subprocess
import sys

ENTRY = re.compile(r"\.entry ([^\n]*)\(([^{]*)")
PARAMETER = re.compile(r"\.param [^\[\n]*(?:\[(\d+)\])?")  # bytes of a struct; nothing for numbers and pointers
INVOKE = re.compile(r"ebb::emulated::Parameters<std::tuple<(.*)>((?:, \d+ul)*)>::invoke\(")


def output(*command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def arguments_of(kernel):
    """Between the parentheses at the end of its demangled name."""
    depth = 0
    for at in reversed(range(len(kernel))):
        depth += {")": 1, "(": -1}.get(kernel[at], 0)
        if depth == 0:
            return kernel[at + 1 : -1]


def listed(text):
    """The types between commas."""
    types, depth = [""], 0
    for letter in text:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            types.append("")
        else:
            types[-1] += letter
    return [one.strip() for one in types if one.strip()]


def main():
    host = {}
    for types, sizes in INVOKE.findall(output("nm", "-C", sys.argv[2])):
        for one, size in zip(listed(types), re.findall(r"\d+", sizes), strict=True):
            for key in one, one.split("<")[0]:
                host.setdefault(key, set()).add(int(size))
    every = ENTRY.findall(output("c++filt", input=output("cuobjdump", "-ptx", sys.argv[1])))
    kernels = [(kernel, parameters) for kernel, parameters in every if "cub::" not in kernel.split("(")[0]]
    for kernel, parameters in kernels:
        for one, size in zip(listed(arguments_of(kernel)), PARAMETER.findall(parameters), strict=True):
            # A type that depends on a parameter has no name of its own: MergedTypes<AddRows::kArrays>.
            passed = host.get(one, host.get(one.split("<")[0], set()))
            if size and int(size) not in passed:
                sys.exit(f"{kernel}:\nnvcc declares {size} bytes for {one}, the host's compiler has {passed}")
    if not kernels:
        sys.exit(f"{sys.argv[1]} has no PTX")
    print(f"   {len(kernels)} kernels")


if __name__ == "__main__":
    main()
