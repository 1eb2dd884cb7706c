"""The first uniform initial values of seed 7 and the name "hidden.weight", for initializers.cpp.

Written from the papers, not from the C++: FNV-1a of the name, splitmix64's finalizer, Philox4x32-10
(Salmon et al., SC 2011; checked against its published test vector), 53 bits of two words.
"""
M32, M64 = 2**32 - 1, 2**64 - 1


def philox(counter, key):
    x, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [p1 >> 32 ^ x[1] ^ k[0], p1 & M32, p0 >> 32 ^ x[3] ^ k[1], p0 & M32]
        k = [(k[0] + 0x9E3779B9) & M32, (k[1] + 0xBB67AE85) & M32]
    return x


assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]

key = 0xCBF29CE484222325
for c in b"hidden.weight":
    key = (key ^ c) * 0x100000001B3 & M64
key = (key + 7) & M64
for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
    key = (key ^ key >> shift) * factor & M64
key ^= key >> 31

for i in range(4):
    words = philox([i, 0, 0, 0], [key & M32, key >> 32])
    print(repr((words[0] << 32 | words[1]) // 2**11 / 2**53))
