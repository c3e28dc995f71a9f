"""The store against a model of it in plain Python: whatever is done in whatever order, both say the same.

Appending, crossing, killing with any cut that a crash may leave, sealing, trying again, reconciling, expiring,
containing, packing, redacting, verifying, forking, moving to the trash and back.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.engine.recorded import action
from tests.model_store.reference import GONE, RESTRICTED, RETENTION, Attempt, Row, Run, readable
from tests.soak import Soak
from worldline.engine.account import account
from worldline.engine.boundary import RecordBoundary, call
from worldline.engine.fork import ForkBoundary
from worldline.engine.fork_point import fork_point
from worldline.engine.plan import Plan
from worldline.engine.recorder import Recorder
from worldline.engine.redact.derive import derive
from worldline.engine.redact.rules import Rules
from worldline.engine.spec import RecordingSpec, Spec
from worldline.errors import (
    Contained,
    Damaged,
    ExpiryRefused,
    Ineligible,
    LineageBroken,
    NothingRemoved,
    WriterConflict,
)
from worldline.policy.rules import Rules as Policy
from worldline.seams.branch import _spec
from worldline.store import layout
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.catalog import entries
from worldline.store.forget import trash
from worldline.store.forget.contain import contain
from worldline.store.forget.retention import expire
from worldline.store.reconcile import reconcile
from worldline.store.recording import Recording
from worldline.store.verify import verify

SECRET = "sought-" + "0123456789"
MARKER = "[redacted:secret-env.SOUGHT]"
SPEC = RecordingSpec(restrict=(f"tool:{RESTRICTED}",), retention=RETENTION)
TEXTS = st.sampled_from([f"holds {SECRET} in it", "a", "the same again", "ünïcode\n", "x" * 40_000, ""])
WHICH = st.integers(0, 999)
SECONDS = st.sampled_from([100, 50, 1000, 49, 99, 0])


class StoreMachine(RuleBasedStateMachine):
    """Every rule does one thing to the store and to the model."""

    @initialize()
    def begin_with_a_store(self) -> None:
        memory = Path("/dev/shm")
        self.home = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None, prefix="worldline-model-"))
        self.store = self.home / "runs"
        self.store.mkdir()
        self.runs: list[Run] = []
        self.places: dict[int, Path] = {}  # of runs and attempts, by identity
        self.writers: dict[int, tuple[Recorder, RecordBoundary]] = {}
        self.bundles: list[tuple[Path, list[Row], set[str]]] = []  # with the tiers that are not in them

    def teardown(self) -> None:
        for recorder, _ in self.writers.values():
            recorder.close()
        shutil.rmtree(self.home)

    # What there is to choose from.

    def attempts(self, *states: str) -> list[Attempt]:
        return [a for run in self.runs if not run.trashed for a in run.attempts if a.state in states]

    def one(self, which: int, *states: str) -> Attempt | None:
        found = self.attempts(*states)
        return found[which % len(found)] if found else None

    def place(self, of: Run | Attempt) -> Path:
        return self.places[id(of)]

    # Recording.

    def writer(self, run: Run) -> None:
        attempt = Attempt(run)
        recorder = Recorder(Spec(store=self.store, task="model", recording=SPEC, run=self.places.get(id(run))))
        recorder.log._chunk_bytes = 3000
        run.attempts.append(attempt)
        self.places[id(attempt)], self.places[id(run)] = recorder.attempt, recorder.run_directory
        self.writers[id(attempt)] = recorder, RecordBoundary(recorder)

    @precondition(lambda self: len(self.runs) < 4)
    @rule(given=TEXTS, gave=TEXTS)
    def record(self, given: str, gave: str) -> None:
        self.runs.append(Run())
        self.writer(self.runs[-1])
        for tool, said in ((RESTRICTED, given), ("look", gave)):
            self.cross(self.runs[-1].attempts[-1], tool, said, gave)

    def cross(self, attempt: Attempt, tool: str, given: str, gave: str) -> None:
        call(self.writers[id(attempt)][1], action(tool, {"it": given}), lambda: gave)
        attempt.call(tool, given, gave)

    @precondition(lambda self: self.attempts("dead", "partial"))
    @rule(which=WHICH)
    def try_again(self, which: int) -> None:
        attempt = self.one(which, "dead", "partial")
        if attempt is None or len(attempt.run.attempts) > 2:
            return
        if not any(other.state in ("live", "complete", "contained") for other in attempt.run.attempts):
            self.writer(attempt.run)

    @precondition(lambda self: self.attempts("live"))
    @rule(which=WHICH, value=TEXTS.filter(lambda text: len(text) < 1000), durable=st.booleans())
    def append(self, which: int, value: str, durable: bool) -> None:
        if (attempt := self.one(which, "live")) is not None:
            recorder, _ = self.writers[id(attempt)]
            recorder.append("observation", "note", {}, {"name": "n", "value": value}, durable=durable)
            attempt.note(value, durable)

    @precondition(lambda self: self.attempts("live"))
    @rule(which=WHICH, tool=st.sampled_from([RESTRICTED, "look"]), given=TEXTS, gave=TEXTS)
    def boundary(self, which: int, tool: str, given: str, gave: str) -> None:
        if (attempt := self.one(which, "live")) is not None:
            self.cross(attempt, tool, given, gave)

    @precondition(lambda self: self.attempts("live"))
    @rule(which=WHICH)
    def seal(self, which: int) -> None:
        if (attempt := self.one(which, "live")) is not None:
            recorder, _ = self.writers.pop(id(attempt))
            published = recorder.seal()
            assert published.is_file() and Recording(published).attempt == self.place(attempt)
            attempt.state = "complete"

    @precondition(lambda self: self.attempts("live"))
    @rule(which=WHICH, cut=st.floats(0, 1), zeros=st.booleans())
    def kill(self, which: int, cut: float, zeros: bool) -> None:
        """The writer dies; of what it did not sync a crash takes any end, and may leave NUL bytes in its place."""
        if (attempt := self.one(which, "live")) is None:
            return
        recorder, _ = self.writers.pop(id(attempt))
        durable, tail = recorder.log._durable, recorder.attempt / layout.TAIL
        recorder.close()
        lines = tail.read_bytes().splitlines(True)
        first = recorder.log.seq - len(lines)
        safe = sum(map(len, lines[: max(0, durable - first)]))
        size = tail.stat().st_size
        left = safe + round(cut * (size - safe))
        os.truncate(tail, left)
        if zeros:
            os.truncate(tail, size)
        borders = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
        kept = first + sum(end <= left for _, end in pairwise(borders))
        attempt.die(kept - 1)  # but the header

    @rule(which=WHICH)
    def settle(self, which: int) -> None:
        there = [run for run in self.runs if not run.trashed]
        if there:
            run = there[which % len(there)]
            states = reconcile(self.place(run), account)
            assert sorted(state.state for state in states) == run.reconcile()

    # What is done to what is sealed.

    @precondition(lambda self: self.attempts("complete", "partial"))
    @rule(which=WHICH, seconds=SECONDS)
    def let_expire(self, which: int, seconds: int) -> None:
        if (attempt := self.one(which, "complete", "partial")) is None:
            return
        recording = Recording(self.place(attempt))
        assert recording.manifest is not None
        now = recording.manifest.sealed_at + seconds * 10**9
        if seconds < attempt.expired_at:
            with pytest.raises(ExpiryRefused, match="clock"):
                expire(recording, now, act=True)
            return
        due = attempt.expire(seconds)
        done = expire(recording, now, act=True)
        assert {content.tier for content in done.due} == due and not done.incidents

    @precondition(lambda self: self.attempts("complete", "partial", "dead"))
    @rule(which=WHICH, secret=st.just(SECRET))
    def put_away(self, which: int, secret: str) -> None:
        if (attempt := self.one(which, "complete", "partial", "dead")) is None:
            return
        run = attempt.run
        if any(other.state == "live" for other in run.attempts):
            with pytest.raises(WriterConflict):
                contain(self.place(run), "SOUGHT", secret, 10**18)
            return
        chosen = [each for each in run.attempts if each.state != "contained" and each.holds(secret)]
        done = contain(self.place(run), "SOUGHT", secret, 10**18)
        before = [each for each in run.attempts if each.state == "contained"]
        assert set(done.attempts) == {self.place(each).name for each in [*chosen, *before]}
        for each in chosen:
            each.state = "contained"
            with pytest.raises(Contained):
                Recording(self.place(each))
        assert not chosen or secret.encode() not in _bytes_below(self.place(run) / layout.ATTEMPTS)

    @precondition(lambda self: self.attempts("complete", "partial", "dead"))
    @rule(which=WHICH, share=st.booleans())
    def packed(self, which: int, share: bool) -> None:
        if (attempt := self.one(which, "complete", "partial", "dead")) is None:
            return
        target = self.home / f"{len(self.bundles)}.skn"
        recording = Recording(self.place(attempt))
        if attempt.state == "dead":
            with pytest.raises(Ineligible):
                pack(recording, target)
            return
        pack(recording, target, share=share)
        self.bundles.append((target, list(attempt.rows), attempt.gone | ({"restricted"} if share else set())))

    @precondition(lambda self: self.attempts("complete", "partial"))
    @rule(which=WHICH)
    def redacted(self, which: int) -> None:
        attempt = self.one(which, "complete", "partial")
        if attempt is None or attempt.gone:
            return
        target, recording = self.home / f"{len(self.bundles)}.skn", Recording(self.place(attempt))
        rules = Rules(["secret-env:SOUGHT"], {"SOUGHT": SECRET})
        if not attempt.holds(SECRET):
            with pytest.raises(NothingRemoved):
                derive(recording, target, rules)
            return
        derive(recording, target, rules)
        left = [Row(row.kind, row.said.replace(SECRET, MARKER), row.tier) for row in attempt.rows]
        self.bundles.append((target, left, set()))
        made = PackedRecording(str(target))
        inside = b"".join(part for entry in made.entries.values() for part in made.content_of(entry))
        assert SECRET.encode() not in inside

    @precondition(lambda self: self.attempts("complete", "partial") and len(self.runs) < 7)
    @rule(which=WHICH, given=TEXTS)
    def fork(self, which: int, given: str) -> None:
        """A branch serves all that its parent did, whose bytes stay what they were, and holds its own call alone."""
        if (parent := self.one(which, "complete", "partial")) is None:
            return
        recording = Recording(self.place(parent))
        at = f"seq:{recording.manifest.rows - 1}" if recording.manifest else ""
        if not parent.whole:
            with pytest.raises((Ineligible, LineageBroken)):
                fork_point(recording, Plan(at=at))
            return
        before = _bytes_below(self.place(parent))
        point = fork_point(recording, Plan(at=at))
        recorder = Recorder(_spec(point, {}, None))
        branch = ForkBoundary(recorder, point, Policy())
        for tool, said in parent.calls():
            call(branch, action(tool, {"it": said}), never)
        assert call(branch, action("look", {"it": given}), lambda: "seen") == "seen" and branch.end()
        recorder.seal()
        attempt = Attempt(Run(), left=parent)
        attempt.run.attempts.append(attempt)
        attempt.call("look", given, "seen")
        attempt.state = "complete"
        self.runs.append(attempt.run)
        self.places[id(attempt)], self.places[id(attempt.run)] = recorder.attempt, recorder.run_directory
        assert _bytes_below(self.place(parent)) == before

    @rule(which=WHICH)
    def to_the_trash_and_back(self, which: int) -> None:
        if not self.runs:
            return
        run = self.runs[which % len(self.runs)]
        place = self.place(run)
        if run.trashed:
            os.rename(trash.trash_of(self.store) / place.name, place)
            run.trashed = False
            return
        found = [each for each in trash.select(self.store, 10**12, older_than=0) if each.path == place]
        (moved,) = trash.move(self.store, found)
        here = (a for other in self.runs if not other.trashed and other is not run for a in other.attempts)
        is_left = any(a.left is not None and a.left.run is run and a.state != "contained" for a in here)
        run.trashed = not is_left and not any(a.state in ("live", "contained") for a in run.attempts)
        assert (moved.kept is None) == run.trashed

    # What must hold.

    @invariant()
    def the_list_is_the_model_s(self) -> None:
        shown = {entry.run: entry.disposition for entry in entries(self.store)}
        assert shown == {self.place(run).name: run.shown for run in self.runs if not run.trashed}

    @invariant()
    def every_recording_holds_what_the_model_says(self) -> None:
        for attempt in self.attempts("live", "dead", "complete", "partial"):
            recording = Recording(self.place(attempt))
            assert said_by(recording, attempt.gone) == readable(attempt.rows, attempt.gone), attempt.state
            assert verify(recording).ok == attempt.sealed
            assert [e.name for e in recording.events()][-1:] == ["meta/end"] or not attempt.sealed

    @invariant()
    def every_bundle_holds_what_was_packed(self) -> None:
        for target, rows, gone in self.bundles[-2:]:
            recording = PackedRecording(str(target))
            assert verify(recording).ok and said_by(recording, gone) == readable(rows, gone)


def never() -> str:
    raise AssertionError("what was recorded is served, and runs no more")


def said_by(recording: Recording, gone: set[str]) -> list[Row]:
    """What a recording says, in the model's words; the contents of `gone` tiers can be read by nobody."""
    rows = []
    for event in recording.events():
        if event.name == "observation/note":
            rows.append(Row("note", event.data["value"]))
        elif event.name in ("action/tool_call", "observation/tool_result"):
            begun = event.name == "action/tool_call"
            value = event.data["arguments" if begun else "result"]
            rows.append(_read(recording, "begun" if begun else "finished", value, gone))
    return rows


def _read(recording: Recording, kind: str, value: dict[str, Any], gone: set[str]) -> Row:
    tier = value["$blob"]["tier"]
    if tier in gone:
        with pytest.raises(Damaged) as refused:
            recording.value(value)
        assert refused.value.facts["state"] in ("expired", "withheld")
        return Row(kind, GONE, tier)
    said = recording.value(value)
    return Row(kind, said["it"] if kind == "begun" else said, tier)


def _bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_store_does_what_the_model_says(soak: Soak) -> None:
    form = settings(max_examples=60, stateful_step_count=30, derandomize=False, database=None)
    for number in soak.rounds():
        run_state_machine_as_test(seed(number)(StoreMachine), settings=form)
