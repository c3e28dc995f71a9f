"""The check of the shipped panel sees a page of other sources, and a page whose script was changed."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest

from checks import panel


@pytest.fixture
def viewer(tmp_path: Path) -> Path:
    """Sources of a panel."""
    for name in (*panel.SINGLE, "src/main.tsx", "src/core/a.ts", "tools/build.mjs", "tests/not-a-source.ts"):
        path = tmp_path / "viewer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"the text of {name}")
    return tmp_path / "viewer"


def page_of(viewer: Path, script: str, sources: str) -> Path:
    """A page as the build makes it."""
    digest = base64.b64encode(hashlib.sha256(b"run()").digest()).decode()
    page = viewer.parent / "viewer.html"
    policy = f"script-src 'sha256-{digest}' blob: 'wasm-unsafe-eval'; img-src data:"
    page.write_text(
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="worldline-sources" content="{sources}"><script type="module" async>{script}</script>'
    )
    return page


def test_a_page_of_these_sources_passes_and_any_other_does_not(viewer: Path) -> None:
    page = page_of(viewer, "run()", panel.sources_digest(viewer))
    assert panel.check(page, viewer).problems == []
    (viewer / "tests/not-a-source.ts").write_text("changed")
    assert panel.check(page, viewer).problems == []
    (viewer / "src/core/a.ts").write_text("changed")
    assert "other sources" in panel.check(page, viewer).problems[0]
    (viewer / "src/core/a.ts").write_text("the text of src/core/a.ts")
    (viewer / "src/core/a.ts").rename(viewer / "src/core/b.ts")
    assert "other sources" in panel.check(page, viewer).problems[0]


def test_a_script_that_the_policy_does_not_name_is_seen(viewer: Path) -> None:
    page = page_of(viewer, "run(); more()", panel.sources_digest(viewer))
    assert "names another script" in panel.check(page, viewer).problems[0]
    assert "make viewer" in panel.check(viewer.parent / "missing.html", viewer).problems[0]
