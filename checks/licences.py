"""Every locked dependency has a licence that fits ours: Python's by its installed metadata, the viewer's by its lock.

`python -m checks.licences LOCK` checks another lock file, in the environment into which it was installed.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path

from checks import ROOT, Verdict

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""SPDX names of the licences that a dependency may have."""

IN_OTHER_WORDS = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mit license, apache license, version 2.0": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "psf-2.0": "PSF-2.0",
}
"""How older metadata names the same licences."""

ELSEWHERE_ONLY = {"colorama": "BSD-3-Clause", "httpx2-jsfetch": "BSD-3-Clause", "pywin32": "PSF-2.0"}
"""Packages that the lock holds for other platforms: not installed here, their licence as they state it."""

UNSTATED = {"atheris": "Apache-2.0", "cedarpy": "Apache-2.0"}
"""Packages whose metadata names no licence: that of the text that they carry."""

WEIGHTS = {"llm.txt": "gemma3-270m-"}
"""Lock files that may hold model weights, and how the packages begin: their publisher's own terms hold for them. They
are never part of what we give away; whoever wants them installs them, and docs/how-to/use-a-real-model.md says so."""


def check(lock: Path = ROOT / "requirements" / "dev.txt") -> Verdict:
    """Look up every package of a lock file; requirements/dev.txt holds those of core.txt too."""
    problems = []
    packages = re.findall(r"^([a-z0-9][a-z0-9._-]*)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
    for package in packages:
        try:
            stated = stated_licences(package)
        except metadata.PackageNotFoundError:
            if package in ELSEWHERE_ONLY:
                stated = [ELSEWHERE_ONLY[package]]
            else:
                problems.append(f"{package} is locked but not installed: run this from the environment of {lock.name}")
                continue
        if lock.name in WEIGHTS and package.startswith(WEIGHTS[lock.name]):
            continue
        if not stated:
            problems.append(f"{package} states no licence")
        problems += [f"{package} has the licence {name!r}" for name in stated if name not in ALLOWED]
    return Verdict(f"{len(packages)} packages", problems)


def check_viewer(lock: Path = ROOT / "viewer" / "package-lock.json") -> Verdict:
    """Look up every package that the viewer is built from, or tested with; the lock file of npm states licences."""
    locked = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    stated = {
        path.rpartition("node_modules/")[2]: facts.get("license", "none") for path, facts in locked.items() if path
    }
    problems = [
        f"{package} has the licence {name!r}"
        for package, names in stated.items()
        for name in choice(names)
        if name not in ALLOWED
    ]
    return Verdict(f"{len(stated)} packages", problems)


def stated_licences(package: str) -> list[str]:
    """The SPDX names that an installed package states; of alternatives (`OR`) one allowed name is enough."""
    facts = metadata.metadata(package)
    if "License-Expression" in facts:
        return [name for part in facts["License-Expression"].split(" AND ") for name in choice(part)]
    classifiers = [c.rpartition(" :: ")[2] for c in facts.get_all("Classifier") or [] if c.startswith("License :: ")]
    names = [name for name in classifiers if name != "OSI Approved"] or facts.get_all("License") or []
    stated = [IN_OTHER_WORDS.get(name.lower(), name) for name in names if name]
    return stated or [name for name in (UNSTATED.get(package),) if name]


def choice(alternatives: str) -> list[str]:
    """One allowed name out of `A OR B`, all of them when none is allowed."""
    names = [name.strip(" ()") for name in alternatives.split(" OR ")]
    return next(([name] for name in names if name in ALLOWED), names)


if __name__ == "__main__":
    sys.exit("\n".join(check(Path(sys.argv[1])).problems) or 0)
