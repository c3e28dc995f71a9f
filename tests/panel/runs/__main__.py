"""`python -m tests.panel.runs KIND... -o DIR`: make the recordings of these kinds, or of all but the big ones."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.panel.runs import KINDS, make


def main() -> int:
    """Make them, and print each file with its size."""
    parser = argparse.ArgumentParser(prog="python -m tests.panel.runs", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    for kind in options.kinds or [kind for kind in KINDS if not kind.startswith("big")]:
        if kind not in KINDS:
            parser.error(f"no kind {kind!r}; there are {', '.join(KINDS)}")
        for path in make(kind, options.output.absolute()):
            size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")))
            print(f"{kind:<10} {size:>12,} bytes  {path}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
