"""Check a proof of Worldline with the standard library alone: python check_proof.py PROOF [FINGERPRINT].

Says what is proven and ends with 0, or why nothing is and ends with 1. Without the run's FINGERPRINT, known from
elsewhere, a proof speaks only of its own manifest, which anybody can write.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

SEAL = ',"seal":"'


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def need(holds, why):
    if not holds:
        raise ValueError(why)


def unhex(text):
    need(isinstance(text, str) and re.fullmatch("[0-9a-f]{64}", text), "not a hash in lower-case hex")
    return bytes.fromhex(text)


def fold(before, after, at, last, path):
    """RFC 9162, 2.1.3.2 and 2.1.4.2: the roots that the path leads to; `before` counts only for a prefix."""
    for other in path:
        need(last > 0, "the path is too long")
        if at & 1 or at == last:
            before, after = sha(b"\x01", other, before), sha(b"\x01", other, after)
            while at and not at & 1:
                at, last = at >> 1, last >> 1
        else:
            after = sha(b"\x01", after, other)
        at, last = at >> 1, last >> 1
    need(last == 0, "the path is too short")
    return before, after


def check(data, fingerprint=None):
    proof = json.loads(data)
    need(isinstance(proof, dict), "not a proof")
    need((json.dumps(proof, ensure_ascii=False, separators=(",", ":")) + "\n").encode() == data, "not as it is written")
    kind = "row" if "row" in proof else "prefix"
    need(list(proof) == ["format", "run", "attempt", "manifest", kind, "path"], "not the fields of a proof")
    need(proof["format"] == "worldline-proof/1", "another format")
    line, end = proof["manifest"], len(SEAL) + 67
    seal = sha(b"\x03", line[:-end].encode()).hex()
    need(line[-end:] == SEAL + seal + '"}\n', "the seal does not fit the manifest")
    need(fingerprint in (None, seal), "another run: its fingerprint is " + seal)
    manifest = json.loads(line)
    need([proof["run"], proof["attempt"]] == [manifest["run"], manifest["attempt"]], "the manifest is of another run")
    rows, root, path = manifest["rows"], unhex(manifest["root"]), [unhex(text) for text in proof["path"]]
    if kind == "row":
        seq, body = proof["row"]["seq"], proof["row"]["body"]
        need(list(proof["row"]) == ["seq", "body"] and json.loads(body + "}")["seq"] == seq, "not the row that it says")
        need(type(seq) is int and 0 <= seq < rows, "no such row")
        leaf = sha(b"\x00", body.encode())
        need(fold(leaf, leaf, seq, rows - 1, path)[1] == root, "the row does not lead to the sealed root")
        return f"row {seq} of {rows}, {proof['run']}, fingerprint {seal}\n{body}}}"
    count, begun = proof["prefix"]["rows"], unhex(proof["prefix"]["root"])
    need(list(proof["prefix"]) == ["rows", "root"] and type(count) is int and 0 < count <= rows, "no such prefix")
    at, last = count - 1, rows - 1
    while at & 1 or (at and count == rows):
        at, last = at >> 1, last >> 1
    first = begun if count & (count - 1) == 0 or count == rows else path.pop(0)
    need(fold(first, first, at, last, path) == (begun, root), "the prefix does not lead to the sealed root")
    return f"the first {count} of {rows} rows, {proof['run']}, fingerprint {seal}"


if __name__ == "__main__":
    try:
        print("proven:", check(Path(sys.argv[1]).read_bytes(), *sys.argv[2:3]))
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, OSError) as error:
        sys.exit(f"not proven: {error}")
