"""Proofs of one leaf and of one prefix: as RFC 9162 writes them, small, made in one pass, and worth nothing changed."""

from __future__ import annotations

import hashlib
import math
import tracemalloc
from collections.abc import Iterable

import pytest

from worldline.model.merkle import Merkle, Range, RangeRoots, consistency, extends, includes, inclusion

SIZES = range(1, 40)


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


LEAVES = [digest(b"\x00" + bytes([number])) for number in range(max(SIZES))]

# The RFC's definitions, word by word, over lists: MTH, PATH and SUBPROOF of section 2.1.


def mth(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else digest(b"")
    k = largest_power_below(len(leaves))
    return digest(b"\x01" + mth(leaves[:k]) + mth(leaves[k:]))


def path(m: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = largest_power_below(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: list[bytes], whole: bool = True) -> list[bytes]:
    if m == len(leaves):
        return [] if whole else [mth(leaves)]
    k = largest_power_below(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def largest_power_below(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def made(ranges: list[Range], leaves: Iterable[bytes]) -> list[bytes]:
    roots = RangeRoots(ranges)
    for leaf in leaves:
        roots.add(leaf)
    return roots.roots()


@pytest.mark.parametrize("size", SIZES)
def test_every_leaf_is_proven_by_the_path_of_the_rfc(size: int) -> None:
    leaves = LEAVES[:size]
    root = mth(leaves)
    for index, leaf in enumerate(leaves):
        proof = made(inclusion(index, size), leaves)
        assert proof == path(index, leaves)
        assert len(proof) <= math.ceil(math.log2(size))
        assert includes(root, size, index, leaf, proof)


@pytest.mark.parametrize("size", SIZES)
def test_every_prefix_is_proven_by_the_proof_of_the_rfc(size: int) -> None:
    leaves = LEAVES[:size]
    root = mth(leaves)
    for prefix in range(1, size + 1):
        proof = made(consistency(prefix, size), leaves)
        assert proof == subproof(prefix, leaves)
        assert len(proof) <= math.ceil(math.log2(size)) + 1
        assert extends(root, size, mth(leaves[:prefix]), prefix, proof)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13])
def test_a_leaf_s_proof_proves_nothing_else(size: int) -> None:
    leaves = LEAVES[:size]
    root, strange = mth(leaves), digest(b"strange")
    for index, leaf in enumerate(leaves):
        proof = path(index, leaves)
        assert not includes(root, size, index, strange, proof)
        assert not includes(strange, size, index, leaf, proof)
        assert not includes(root, size, index, leaf, [*proof, strange])
        assert not includes(root, size, size, leaf, proof) and not includes(root, size, -1, leaf, proof)
        for other in range(size):
            assert includes(root, size, other, leaf, proof) == (other == index)
        for at in range(len(proof)):
            assert not includes(root, size, index, leaf, proof[:at] + proof[at + 1 :])
            assert not includes(root, size, index, leaf, [*proof[:at], strange, *proof[at + 1 :]])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13])
def test_a_prefix_s_proof_proves_nothing_else(size: int) -> None:
    leaves = LEAVES[:size]
    root, strange = mth(leaves), digest(b"strange")
    for prefix in range(1, size + 1):
        proof, begun = subproof(prefix, leaves), mth(leaves[:prefix])
        assert not extends(root, size, strange, prefix, proof) and not extends(strange, size, begun, prefix, proof)
        assert not extends(root, size, begun, prefix, [*proof, strange])
        for other in range(size + 2):
            assert extends(root, size, begun, other, proof) == (other == prefix)
        for at in range(len(proof)):
            assert not extends(root, size, begun, prefix, proof[:at] + proof[at + 1 :])
            assert not extends(root, size, begun, prefix, [*proof[:at], strange, *proof[at + 1 :]])


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_there_is_no_proof_of_what_is_not_there(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="no leaf"):
        inclusion(index, size)
    with pytest.raises(ValueError, match="no prefix"):
        consistency(index + 1 if index > 0 else index, size)


def test_too_few_leaves_make_no_proof() -> None:
    roots = RangeRoots(inclusion(0, 4))
    roots.add(LEAVES[0])
    with pytest.raises(ValueError, match="do not reach"):
        roots.roots()


def test_the_example_of_the_rfc() -> None:
    """Section 2.1.5: the tree of seven leaves with its named nodes."""
    a, b, c, d, e, f, j = LEAVES[:7]
    g, h, i = (digest(b"\x01" + left + right) for left, right in ((a, b), (c, d), (e, f)))
    k, m = digest(b"\x01" + g + h), digest(b"\x01" + i + j)
    leaves = LEAVES[:7]
    assert mth(leaves) == digest(b"\x01" + k + m)
    assert made(inclusion(0, 7), leaves) == [b, h, m]
    assert made(inclusion(3, 7), leaves) == [c, g, m]
    assert made(inclusion(4, 7), leaves) == [f, j, k]
    assert made(inclusion(6, 7), leaves) == [i, k]
    assert made(consistency(3, 7), leaves) == [c, d, g, m]
    assert made(consistency(4, 7), leaves) == [m]
    assert made(consistency(6, 7), leaves) == [i, j, k]


# The inputs and hashes that implementations of Certificate Transparency share (RFC 6962 and 9162 have one tree).
INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
CA85 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0"
BC1A = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b"


def test_the_vectors_of_certificate_transparency() -> None:
    leaves = [digest(b"\x00" + bytes.fromhex(text)) for text in INPUTS]
    merkle = Merkle()
    for leaf, root in zip(leaves, ROOTS, strict=True):
        merkle.add(leaf)
        assert merkle.root().hex() == root
    assert [part.hex() for part in made(inclusion(5, 8), leaves)] == [BC1A, CA85, ROOTS[3]]
    assert [part.hex() for part in made(consistency(6, 8), leaves)] == [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        CA85,
        ROOTS[3],
    ]
    assert [part.hex() for part in made(consistency(2, 5), leaves[:5])] == [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        BC1A,
    ]
    assert Merkle().root() == digest(b"")


def test_a_tree_of_many_leaves_is_that_of_the_rfc_after_each_of_them() -> None:
    leaves, tree = [digest(number.to_bytes(2, "big")) for number in range(700)], Merkle()
    for number, leaf in enumerate(leaves, 1):
        tree.add(leaf)
        if number % 64 in (0, 1, 2, 33, 63):
            assert (tree.size, tree.root()) == (number, mth(leaves[:number])), number


def test_memory_does_not_grow_with_the_log() -> None:
    peaks = []
    for size in (1 << 10, 1 << 16):
        tracemalloc.start()
        made(inclusion(size // 3, size), (number.to_bytes(32, "big") for number in range(size)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0] < 64 << 10
