"""A study that is killed loses nothing that was drawn, and answers in the end to the bit what it would have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.attribution.conftest import Stores
from tests.attribution.line import AGENT
from worldline.errors import Damaged, WriterConflict
from worldline.store import layout
from worldline.store.studies.folder import studies
from worldline.store.studies.journal import ANSWERED, DRAWN, JOURNAL, Journal, read_journal
from worldline.store.studies.table import FILE, listed

STUDY = """
import json, os, signal, sys
import worldline as wl
from worldline.analysis.attribution.asking import LocateOptions
from worldline.store.studies import journal

line, dies = int(sys.argv[2]), sys.argv[3]
add = journal.Journal.add

def killed(self, what, data, now_ns, key=""):
    if what == "drawn" and len(self.entries) == line and dies == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    entry = add(self, what, data, now_ns, key)
    if what == "drawn" and len(self.entries) == line + 1 and dies == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return entry

journal.Journal.add = killed
study = wl.attribute(
    wl.open("latest", sys.argv[1]), "{agent}", "outcome", executor="inline", budget=wl.Budget(rollouts=20),
    options=LocateOptions(checks=2, batch=8, fresh=12, cap=16),
)
print(json.dumps(study.to_json()))
"""


def _run(store: Path, line: int = -1, dies: str = "never") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", STUDY.replace("{agent}", AGENT), str(store), str(line), dies]
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=240, check=False
    )


def test_killed_at_five_points_it_answers_in_the_end_to_the_bit_what_it_would_have(stores: Stores) -> None:
    whole = _run(stores.copy("whole"))
    assert whole.returncode == 0, whole.stderr
    store = stores.copy("killed")
    points = [(1, "before"), (4, "after"), (9, "before"), (10, "after"), (17, "before")]
    for line, dies in points:
        assert _run(store, line, dies).returncode == -signal.SIGKILL
        (folder,) = studies(store)
        lines = read_journal(folder)
        assert len(lines.entries) == line + (dies == "after"), "each rollout is on disk before the next begins"
    ended = _run(store)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == whole.stdout
    drawn = [entry.key for entry in read_journal(folder).entries if entry.what == DRAWN]
    assert len(drawn) == len(set(drawn)) == 22, "no rollout is drawn twice"


def _drawn(store: Path) -> wl.Run:
    run = wl.open("latest", store)
    wl.attribute(run, AGENT, "outcome", executor="inline", budget=wl.Budget(rollouts=2))
    return run


def test_the_table_is_made_of_the_journals_and_may_go_at_any_time(stores: Stores) -> None:
    store = stores.copy()
    _drawn(store)
    before = listed(store)
    assert [(study.kind, study.state, study.verdict, study.rollouts) for study in before] == [
        ("attribute", "stopped", "budget", 2)
    ]
    for content in (None, b"", b"no database at all, and long enough to be taken for one " * 40):
        path = store / "studies" / FILE
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        assert listed(store) == before


def test_what_a_crash_cut_off_counts_for_nothing_and_what_was_changed_is_refused(stores: Stores) -> None:
    store = stores.copy()
    _drawn(store)
    (folder,) = studies(store)
    path = folder / JOURNAL
    good = path.read_bytes()
    path.write_bytes(good[:-20])
    with Journal(folder) as journal:
        assert journal.entries[-1].what == DRAWN
    assert path.read_bytes() == good[: good.rindex(b"\n", 0, -1) + 1], "half a line is cut off"
    spoiled = good.replace(b'"success":false', b'"success":true ', 1).replace(b'"success":true', b'"success":false', 1)
    path.write_bytes(spoiled if spoiled != good else good.replace(b'"at":0', b'"at":1', 1))
    with pytest.raises(Damaged, match="nothing was changed"):
        Journal(folder)
    assert path.read_bytes() != good


def test_an_interruption_in_the_midst_of_a_line_breaks_no_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    with Journal(tmp_path / "study") as journal:
        journal.add(DRAWN, {"k": 0}, 1)
        for name in ("sync", "write_all"):
            with monkeypatch.context() as patched:
                patched.setattr(layout, name, interrupted if name == "sync" else lambda file, line: interrupted(file))
                with pytest.raises(KeyboardInterrupt):
                    journal.add(DRAWN, {"lost": name}, 2)
        journal.add(DRAWN, {"k": 1}, 3)
    lines = read_journal(tmp_path / "study")
    assert lines.trouble is None
    assert [entry.data for entry in lines.entries] == [{"k": 0}, {"lost": "sync"}, {"k": 1}]


def test_two_writers_do_not_share_a_study(stores: Stores) -> None:
    store = stores.copy()
    run = _drawn(store)
    (folder,) = studies(store)
    with Journal(folder), pytest.raises(WriterConflict, match="another process"):
        wl.attribute(run, AGENT, "outcome", executor="inline", budget=wl.Budget(rollouts=2))
    assert wl.attribute(run, AGENT, "outcome", executor="inline", budget=wl.Budget(rollouts=2)).verdict == "budget"


def test_an_answer_of_fewer_rollouts_does_not_take_the_place_of_a_better_one(stores: Stores) -> None:
    store = stores.copy()
    run = _drawn(store)
    wl.attribute(run, AGENT, "outcome", executor="inline", budget=wl.Budget(rollouts=0))
    (folder,) = studies(store)
    answered: list[Any] = [entry.data for entry in read_journal(folder).entries if entry.what == ANSWERED]
    assert [answer["rollouts"] for answer in answered] == [2]
    assert json.loads(json.dumps(answered[0]))["stopped"] == "rollouts"
