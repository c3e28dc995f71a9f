"""One target under atheris: `python -m tests.fuzz.under_atheris TARGET [libFuzzer's options] CORPUS ...`.

Our own modules and the parser of HTTP are instrumented as they are imported, so this file imports none of them before.
"""

from __future__ import annotations

import sys

import atheris


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    with atheris.instrument_imports(include=["worldline", "h11"]):
        from tests.fuzz.targets import TARGETS
    name = sys.argv.pop(1)
    atheris.Setup(sys.argv, TARGETS[name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
