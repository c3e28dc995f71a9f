"""The checks find what they are there for, and `require` does not let a promised thing be skipped."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import tests.conftest
from checks import ROOT, files, licences, links, names, third_party
from tests.conftest import require


@pytest.mark.parametrize(
    "text",
    [
        "see /" + "work/main/src",
        "open('/" + "home/somebody/notes')",
        "from https://" + "pypi" + ".org/simple",
        "key = 's" + "k-ant-" + "a1B2" * 12 + "'",
    ],
)
def test_what_may_not_be_in_a_file_is_found(text: str) -> None:
    assert [line for line, _, _ in files.findings("first line\n" + text)] == [2]


@pytest.mark.parametrize(
    "text", ["src/work/main", "~/home/x", "https://host.example/root/x", "/home/you/agent", "sk-fake"]
)
def test_what_may_be_in_a_file_is_left_alone(text: str) -> None:
    assert list(files.findings(text)) == []


def test_a_link_that_leads_nowhere_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(links, "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# A `heading`, here\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Own\n[a](other.md#a-heading-here) [b](other.md#twice-1) [c](#own) [d](https://host.example/x)\n"
        "```text\n[not a link](nowhere.md)\n```\n"
        "[e](missing.md)\n[f](other.md#missing)\n[g](../outside.md)\n[h]: gone.md\n"
    )
    assert [(line, target) for line, target, _ in links.broken_links(page)] == [
        (6, "missing.md"),
        (7, "other.md#missing"),
        (8, "../outside.md"),
        (9, "gone.md"),
    ]


def test_a_third_party_is_open_to_the_rooms_that_list_it(tmp_path: Path) -> None:
    module = tmp_path / "m.py"
    module.write_text(
        "import os\nfrom worldline import errors\ndef f():\n    import httpx.auth\n    from h11 import X\n"
    )
    assert list(third_party.third_parties(module)) == [(4, "httpx"), (5, "h11")]
    assert "h11" in third_party.allowed_in("seams/wire/proxy")
    assert "h11" not in third_party.allowed_in("seams/wireless")
    assert "click" not in third_party.allowed_in("store/log")


def test_a_licence_that_does_not_fit_is_found_in_the_lock_of_the_viewer(tmp_path: Path) -> None:
    lock = tmp_path / "package-lock.json"
    lock.write_text(
        '{"packages": {"": {"name": "own"}, "node_modules/a": {"license": "MIT OR GPL-3.0"},'
        ' "node_modules/b/node_modules/@c/d": {"license": "GPL-3.0"}, "node_modules/e": {}}}'
    )
    assert licences.check_viewer(lock).problems == ["@c/d has the licence 'GPL-3.0'", "e has the licence 'none'"]


def test_a_public_name_is_sorted_importable_and_documented() -> None:
    package = ModuleType("package")
    package.__dict__.update(__all__=["beta", "alpha", "gone"], beta=lambda: None, alpha=require)
    problems = "\n".join(names.problems_of(package))
    assert "not sorted" in problems
    assert "package.beta has no docstring" in problems
    assert "package.gone cannot be imported" in problems
    assert "alpha has" not in problems


def test_a_missing_thing_skips_unless_it_is_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDLINE_REQUIRE", "git,network")
    require("git", True, "here")
    with pytest.raises(pytest.skip.Exception, match="criu: not installed"):
        require("criu", False, "not installed")
    with pytest.raises(pytest.fail.Exception, match="no way out"):
        require("network", False, "no way out")
    monkeypatch.setenv("WORLDLINE_REQUIRE", "all")
    with pytest.raises(pytest.fail.Exception, match="not installed"):
        require("criu", False, "not installed")


def test_a_write_into_a_real_store_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tests.conftest, "STORES", (tmp_path / "absent", tmp_path / "store"))
    before = tests.conftest.contents_of_stores()
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "row").write_text("x")
    assert tests.conftest.contents_of_stores() != before
    assert Path.cwd() == tmp_path, "a test works in a directory of its own"
    assert not Path.cwd().is_relative_to(ROOT)
