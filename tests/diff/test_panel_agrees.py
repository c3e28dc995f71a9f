"""The panel and the engine compare by one rule: two programs that share no line say the same of the same runs.

What `viewer/src/core` says is asked of `viewer/tests/core/aligned.mjs`, once for all tests.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, require
from worldline.analysis.align import MOST_EDITS, Keys, align
from worldline.analysis.difference import compare
from worldline.analysis.keys import keys_of, telling
from worldline.engine.steps import steps
from worldline.model.volatile import settled, volatile_by
from worldline.store.bundle.packed import open_recording

VIEWER = ROOT / "viewer"
GOLDEN = sorted((ROOT / "tests" / "golden" / "v1").glob("*.skn"))
# In these the arguments of a call stand in a content of its own, which the panel does not read for a line.
ELSEWHERE = {"derived", "expired", "exported", "restricted", "shared"}
READABLE = [path for path in GOLDEN if path.stem not in ELSEWHERE]


def runs() -> list[tuple[Keys, Keys]]:
    """Pairs of runs: a few that are small and alike, one that differs in more places than are looked at at once."""
    chance = random.Random(7)
    pairs = [(_keys(chance, 30, 3), _keys(chance, 30, 3)) for _ in range(150)]
    pairs += [(_keys(chance, 12, 40), _keys(chance, 14, 40)) for _ in range(50)]
    long = [[f"a{chance.randrange(500)}" for _ in range(MOST_EDITS + 400)] for _ in range(2)]
    for side in long:
        side[900:900] = ["x1", "y1"]
    return [*pairs, (_of(long[0]), _of(long[1]))]


def _keys(chance: random.Random, most: int, arguments: int) -> Keys:
    return _of([f"{chance.choice('abc')}{chance.randrange(arguments)}" for _ in range(chance.randrange(most))])


def _of(steps: Sequence[str]) -> Keys:
    return Keys(list(steps), [step[:1] for step in steps])


TEXTS = [
    "",
    "plain",
    "run 2f534fbe-e1d2-43d4-a4a2-c6351d1edf8e",
    "RUN 2F534FBE-E1D2-43D4-A4A2-C6351D1EDF8E!",
    "2026-11-30",
    "2026-11-30T07:12:04Z and 2026-11-30 07:12",
    "2026-11-30T07:12:04.123+01:00",
    "1764486729",
    "1764486729123",
    "17644867291",
    "call_120ea67f5480443df2b44828",
    "run_01m8nx1naafh66hx2hf2wgfn3e",
    "01M8NX1NAAFH66HX2HF2WGFN3E",
    "d41d8cd98f00b204e9800998ecf8427e",
    "ü2026-11-30ü",
    "\u0662\u0660\u0662\u0666-\u0661\u0661-\u0663\u0660",
    "x" * 40,
    "0" * 40,
    "é_" + "a" * 20,
    "id: 5\nid: 6",
    "aİd",
    "\u017f" * 33,
]
NAMES = [
    "id",
    "Id",
    "orderId",
    "order_id",
    "x\nid",
    "token",
    "created",
    "createdAt",
    "at",
    "_at",
    "ms",
    "took_ms",
    "n",
    "id\n",
]
VALUES: list[Any] = [1, 2.5, 1e-5, 1e21, 1764486729, 1764486730, True, None, "a", *TEXTS[2:8], {"a": 1}, [1]]
CASES = [[[name], a, b] for name in NAMES for a in VALUES[:4] for b in VALUES[8:10]]
CASES += [[["a", 0], a, b] for a in VALUES for b in VALUES if a is not b]
TOLD: list[Any] = [
    None,
    "",
    "two\nlines",
    " \u3000 x \ufeff",
    5,
    64.0,
    1e-5,
    1.5e-6,
    1e-7,
    1e21,
    1e16,
    True,
    [],
    {},
    [1, [2, {"a": None}]],
    {"zeta": 1, "path": "/a", "name": "Orders"},
    {"b": 1, "10": 2, "9": 3, "a": 4, "01": 5},
    {"text": "a\nb", "url": ""},
    {"a": {"c": 1.0, "b": "ü\t\u007f"}},
    {"a": "x" * 200, "b": 1},
    {"a": "x" * 50, "b": "y" * 80},
    {"a": list(range(40))},
    {"deep": [[[[[[[[[1]]]]]]]]]},
    {"$tuple": [1, 2]},
    {"a": {"$int": "18446744073709551616"}},
    {"a": {"$f64": "nan"}},
    {"a": {"$b64": "bGFtcA=="}},
    {"$$a": 1},
    {"a": {"$blob": {"name": "x", "size": 9}}},
    {"a": {"$withheld": {}}},
    {"a": False},
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the panel says of all of it."""
    require("node", shutil.which("node"), "not installed")
    require("viewer", (VIEWER / "node_modules").is_dir(), "no viewer/node_modules: make viewer")
    asked = {
        "pairs": [[{"whole": keys.whole, "action": keys.action} for keys in pair] for pair in runs()],
        "settled": TEXTS,
        "volatile": CASES,
        "telling": TOLD,
        "recordings": [str(path) for path in READABLE],
        "aligned": [[str(a), str(b)] for a in READABLE[:6] for b in READABLE],
    }
    question = tmp_path_factory.mktemp("asked") / "asked.json"
    question.write_text(json.dumps(asked))
    done = subprocess.run(
        ["node", VIEWER / "tests" / "core" / "aligned.mjs", question],
        capture_output=True,
        text=True,
        check=False,
        cwd=VIEWER,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_any_two_runs_are_aligned_row_for_row(told: dict[str, Any]) -> None:
    given_up = 0
    for (left, right), panel in zip(runs(), told["pairs"], strict=True):
        found = align(left, right)
        given_up += not found.shortest
        assert [[row.left, row.right, row.exact] for row in found.rows] == panel["rows"]
        assert found.first == panel["first"]
    assert given_up == 1


def test_the_same_parts_of_a_text_are_volatile(told: dict[str, Any]) -> None:
    assert dict(zip(TEXTS, map(settled, TEXTS), strict=True)) == dict(zip(TEXTS, told["settled"], strict=True))


def test_the_same_changes_do_not_count(told: dict[str, Any]) -> None:
    for (path, was, now), panel in zip(CASES, told["volatile"], strict=True):
        assert volatile_by(path, was, now) == panel, (path, was, now)


def test_calls_are_told_apart_by_the_same_words(told: dict[str, Any]) -> None:
    assert [telling(value) for value in TOLD] == told["telling"]


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_the_steps_of_a_recording_have_the_same_keys(told: dict[str, Any], path: Path) -> None:
    panel = told["keys"][READABLE.index(path)]
    keys = [keys_of(step) for step in steps(open_recording(path))]
    assert [list(key) for key in keys] == [list(key) for key in zip(panel["whole"], panel["action"], strict=True)]


def test_recordings_are_aligned_row_for_row_with_the_same_anchors(told: dict[str, Any]) -> None:
    for (a, b), panel in zip([(a, b) for a in READABLE[:6] for b in READABLE], told["aligned"], strict=True):
        found = compare(open_recording(a), open_recording(b))
        base = [next((step.index for step in steps(open_recording(path))), 0) for path in (a, b)]
        rows = [[-1 if n is None else n - base[i] for i, n in enumerate((p.left, p.right))] for p in found.steps]
        assert rows == [row[:2] for row in panel["rows"]]
        anchors = [{"row": n, "what": w} for n, pair in enumerate(found.steps) for w in pair.anchors if w != "tool"]
        assert anchors == panel["anchors"]
