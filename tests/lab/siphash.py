# SPDX-License-Identifier: GPL-2.0
"""SipHash, which directors use for sums of connections and for places of mh, once more."""

import struct

MASK = 2 ** 64 - 1


def _rotated(x, n):
    return (x << n | x >> 64 - n) & MASK


def _rounds(v, n):
    for _ in range(n):
        v[0] = v[0] + v[1] & MASK
        v[2] = v[2] + v[3] & MASK
        v[1], v[3] = _rotated(v[1], 13) ^ v[0], _rotated(v[3], 16) ^ v[2]
        v[0] = _rotated(v[0], 32)
        v[2] = v[2] + v[1] & MASK
        v[0] = v[0] + v[3] & MASK
        v[1], v[3] = _rotated(v[1], 17) ^ v[2], _rotated(v[3], 21) ^ v[0]
        v[2] = _rotated(v[2], 32)


def siphash(data, key, rounds=(2, 4)):
    """SipHash-2-4 of DATA with KEY, two numbers of 64 bits; ROUNDS: for each word and at the
    end."""
    v = [key[n % 2] ^ c for n, c in enumerate((0x736f6d6570736575, 0x646f72616e646f6d,
                                              0x6c7967656e657261, 0x7465646279746573))]
    whole = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    for (word,) in struct.iter_unpack("<Q", whole):
        v[3] ^= word
        _rounds(v, rounds[0])
        v[0] ^= word
    v[2] ^= 255
    _rounds(v, rounds[1])
    return v[0] ^ v[1] ^ v[2] ^ v[3]
