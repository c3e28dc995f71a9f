"""The page in the package is what its sources make, and stays small."""

from __future__ import annotations

import base64
import gzip
import re
import shutil
import subprocess
import zlib

from checks import panel as check
from tests.conftest import ROOT, require
from tests.panel.conftest import PAGE as page_file


def test_the_shipped_page_was_made_of_these_sources() -> None:
    assert check.check(page_file).problems == []


def test_building_it_again_gives_the_same_bytes() -> None:
    require("node", shutil.which("node"), "not installed")
    require("viewer", (ROOT / "viewer" / "node_modules").is_dir(), "viewer/node_modules is not installed (make panel)")
    command = ["node", "tools/assemble.mjs", "--check"]
    done = subprocess.run(command, cwd=ROOT / "viewer", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_app_without_its_lazy_parts_stays_in_its_budget() -> None:
    page = page_file.read_text("utf-8")
    part = r'<script type="text/plain" data-lazy="([A-Za-z0-9_-]+)">([^<]*)</script>'
    parts = {name: zlib.decompress(base64.b64decode(data), -15) for name, data in re.findall(part, page)}
    first = re.sub(part, "", page).encode() + parts["main"]
    assert len(gzip.compress(first, 9)) <= 82_000
