"""Checkpoints: both halves at one row or none, a graph that only grows, and the way from one to any row behind it."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.recorded import action, recorder_in
from worldline.engine.agent_state import Upcasters, give_back, half_of
from worldline.engine.boundary import RecordBoundary
from worldline.engine.cadence import CHEAP, Cadence, cost, optimum
from worldline.engine.checkpoints import Checkpoints, checkpoints_of, graph_of, nearest, state_at, sweep
from worldline.engine.crossing import Live
from worldline.engine.recorder import Recorder
from worldline.engine.spec import RecordingSpec
from worldline.engine.substrates.files import Files, FilesEnv
from worldline.engine.substrates.none import Nothing
from worldline.engine.substrates.substrate import Policy, SnapRef
from worldline.errors import Ineligible, NewerFormat, NotQuiescent, ReadError, SeqMismatch, UsageError, ValueRefused
from worldline.model.checkpoint import Graph
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording
from worldline.store.verify import verify


class Chat:
    """An agent whose state can be taken."""

    schema = "chat/2"

    def __init__(self) -> None:
        self.said: list[Any] = []

    def dump(self) -> Any:
        return {"said": list(self.said)}

    def load(self, state: Any) -> None:
        self.said = list(state["said"])


class Shop:
    """A run under way in a workspace."""

    def __init__(self, quick: Path, **spec: Any) -> None:
        self.store = quick / "runs"
        self.workspace = quick / "workspace"
        self.workspace.mkdir(exist_ok=True)
        (self.workspace / "main.py").write_text("one\n")
        self.files = Files(self.store)
        self.recorder: Recorder
        self.boundary: RecordBoundary
        self.recorder, self.boundary = recorder_in(self.store, **spec)
        self.env: FilesEnv = self.files.open(self.workspace, Policy(store=self.store))
        self.points = Checkpoints(self.recorder, self.env, cadence=Cadence(every=1))

    def tool(self, name: str, effect: str = "idempotent") -> int:
        """A tool call, carried out. Returns the row it began with."""
        live = self.boundary.begin(msgspec.structs.replace(action(name), effect=effect))
        assert isinstance(live, Live)
        began = self.recorder.log.seq - 1
        live.finish({"name": name, "result": None, "elapsed_ns": 1})
        return began

    def recording(self) -> Recording:
        return Recording(self.recorder.attempt)


def test_both_halves_are_of_one_row_and_stand_in_the_manifest_and_the_bundle(quick: Path) -> None:
    shop, chat = Shop(quick), Chat()
    taken = []
    effects = []
    for step in range(3):
        (shop.workspace / "main.py").write_text(f"step {step}\n")
        chat.said.append(("turn", step))
        taken.append(shop.points.take(step, state=chat))
        effects.append(shop.tool("mail", "side_effecting" if step == 1 else "idempotent"))
    shop.recorder.seal()
    recording = shop.recording()
    found = checkpoints_of(recording)
    assert found == taken
    assert [kept.checkpoint.env.seq for kept in found] == [kept.checkpoint.agent.seq for kept in found]
    assert [kept.checkpoint.parents for kept in found] == [(), (found[0].checkpoint_id,), (found[1].checkpoint_id,)]
    assert [kept.checkpoint.side_effect_cursor for kept in found] == [None, None, effects[1]]
    assert [kept.state for kept in found][2] == {"said": [("turn", 0), ("turn", 1), ("turn", 2)]}
    manifest = recording.manifest
    assert manifest is not None
    assert [node["checkpoint_id"] for node in manifest.checkpoint_dag] == [kept.checkpoint_id for kept in found]
    assert verify(recording).ok
    bundle = PackedRecording(str(pack(recording, quick / "run.skn").path))
    assert verify(bundle).ok and checkpoints_of(bundle) == found
    with zipfile.ZipFile(quick / "run.skn") as entries:
        held = [json.loads(entries.read(f"snapshots/{kept.checkpoint_id}/meta.json")) for kept in found]
    assert [each["env_state"]["digest"] for each in held] == [kept.ref.digest for kept in found]
    for kept in found:
        (branch,) = shop.files.fork(kept.ref, 1, branch_seed="", identity="run")
        assert (branch.root / "main.py").read_text() == f"step {kept.step}\n"
        branch.close()


def test_halves_of_two_rows_make_no_checkpoint(quick: Path) -> None:
    shop = Shop(quick)
    ref = shop.env.snapshot(shop.recorder.log.seq - 1)
    shop.tool("mail")
    half, state = half_of(Chat(), shop.recorder.log.seq - 1)
    rows = shop.recorder.log.seq
    with pytest.raises(SeqMismatch) as refused:
        shop.points.publish(ref, half, state)
    assert refused.value.facts == {"environment": ref.seq, "agent": half.seq}
    assert shop.recorder.log.seq == rows


class Busy(Chat):
    """An agent that goes on recording while its state is taken."""

    def __init__(self, shop: Shop, times: int) -> None:
        super().__init__()
        self.shop, self.times = shop, times

    def dump(self) -> Any:
        if self.times:
            self.times -= 1
            self.shop.tool("late")
            (self.shop.workspace / "late.txt").write_text(str(self.times))
        return super().dump()


def test_a_row_in_between_takes_both_halves_again(quick: Path) -> None:
    shop = Shop(quick)
    kept = shop.points.take(1, state=Busy(shop, 2))
    assert kept is not None and kept.checkpoint.row == kept.seq + 1
    (branch,) = shop.files.fork(kept.ref, 1, branch_seed="", identity="run")
    assert (branch.root / "late.txt").read_text() == "0", "the environment's half is older than the agent's"
    with pytest.raises(NotQuiescent):
        shop.points.take(2, state=Busy(shop, 100))
    assert checkpoints_of(shop.recording()) == [kept]


def test_a_state_that_is_no_data_writes_nothing(quick: Path) -> None:
    shop, chat = Shop(quick), Chat()
    chat.said = [object()]
    with pytest.raises(ValueRefused):
        shop.points.take(1, state=chat)
    assert checkpoints_of(shop.recording()) == []


def test_only_a_workspace_that_changed_is_kept_again(quick: Path) -> None:
    shop = Shop(quick)
    first = shop.points.take(1)
    assert shop.points.take(1, only_changed=True) is None
    (shop.workspace / "main.py").write_text("by hand\n")
    outside = shop.points.take(1, by="outside", only_changed=True)
    assert outside is not None and first is not None and outside.by == "outside"
    assert checkpoints_of(shop.recording()) == [first, outside]


def test_ways_that_come_together_are_the_same_state_stored_once(quick: Path) -> None:
    shop, chat = Shop(quick), Chat()
    start = shop.points.take(0, state=chat)
    assert start is not None
    ends = []
    for way in ("left", "right"):
        (shop.workspace / way).write_text(way)
        (shop.workspace / "both").write_text("the same\n" * 100)
        side = shop.points.take(1, state=chat, parents=[start.checkpoint_id])
        (shop.workspace / way).unlink()
        assert side is not None
        ends.append(shop.points.take(2, state=chat))
        (shop.workspace / "both").unlink()
    merged = shop.points.take(3, state=chat, parents=[end.checkpoint_id for end in ends if end])
    assert merged is not None and len(merged.checkpoint.parents) == 2
    graph = graph_of(shop.store)
    assert len(graph) == 6 and [node.id for node in graph.heads()] == [merged.checkpoint_id]
    assert len(graph.ancestors(merged.checkpoint_id)) == 6
    groups = [[node.id for node in group] for group in graph.converged()]
    assert [end.checkpoint_id for end in ends if end] in groups
    assert ends[1] is not None and ends[1].ref.bytes < 600, "what was there before is there once"
    assert [merged.checkpoint_id, start.checkpoint_id] in [sorted(group, reverse=True) for group in groups]
    with pytest.raises(ValueError, match="two checkpoints"):
        Graph([start.checkpoint, msgspec.structs.replace(start.checkpoint, step=9)])


def test_the_nearest_checkpoint_and_the_tail_lead_to_every_row(quick: Path) -> None:
    shop = Shop(quick)
    states, folders = {}, {}
    last: SnapRef | None = None
    for step in range(6):
        if step % 2 == 0:
            kept = shop.points.take(step)
            assert kept is not None
            last = kept.ref
        (shop.workspace / f"made-{step}").write_text("made")
        row = shop.tool(f"make-{step}")
        states[row], folders[row] = last, {path.name for path in shop.workspace.iterdir()}
    shop.recorder.seal()
    recording = shop.recording()
    for row, ref in states.items():
        at = state_at(recording, row)
        assert at.checkpoint is not None and ref is not None and at.checkpoint.ref == ref
        assert nearest(recording, row) == at.checkpoint
        (branch,) = shop.files.fork(at.checkpoint.ref, 1, branch_seed="", identity="run")
        for event in at.tail:  # issued again
            if event.name == "action/tool_call":
                (branch.root / str(event.data["name"]).replace("make", "made")).write_text("made")
        assert {path.name for path in branch.root.iterdir()} == folders[row]
        branch.close()
    assert state_at(recording, 0).checkpoint is None


def test_what_is_swept_is_what_no_run_names(quick: Path) -> None:
    shop = Shop(quick)
    refs = []
    for step in range(4):
        (shop.workspace / "main.py").write_text(f"step {step}\n")
        kept = shop.points.take(step)
        assert kept is not None
        refs.append(kept.ref)
    (shop.workspace / "main.py").write_text("in no row\n" * 1000)
    shop.env.snapshot(1)
    shop.recorder.seal()
    assert sweep(shop.store) > 9_000
    assert shop.files.snapshots.taken() == [ref.id for ref in refs]
    for ref in refs:
        assert shop.files.export(ref) == ref.digest
    (chunk,) = (shop.recorder.attempt / "chunks").iterdir()
    chunk.write_bytes(b"damaged\n" + chunk.read_bytes())
    with pytest.raises(ReadError):
        sweep(shop.store)
    assert shop.files.snapshots.taken() == [ref.id for ref in refs], "what cannot be read is taken for unused"


def test_a_restricted_runs_agent_state_is_restricted(quick: Path) -> None:
    shop, chat = Shop(quick, recording=RecordingSpec(restrict=("tool:bank",))), Chat()
    chat.said = ["account 4711 0815"]
    kept = shop.points.take(1, state=chat)
    assert kept is not None and kept.checkpoint.state is None, "a digest of what is restricted"
    shop.recorder.seal()
    (row,) = [event for event in shop.recording().events() if event.name == "snapshot_ref/checkpoint"]
    assert row.data["state"]["$blob"]["tier"] == "restricted"
    assert checkpoints_of(shop.recording())[0].state == {"said": ["account 4711 0815"]}


def test_a_run_without_files_has_the_agents_half(quick: Path) -> None:
    shop, chat = Shop(quick), Chat()
    env = Nothing(shop.store).open(shop.workspace, Policy(store=shop.store))
    kept = Checkpoints(shop.recorder, env, cadence=Cadence(every=1)).take(0, state=chat)
    assert kept is not None and kept.ref.digest is None and kept.state == {"said": []}


def test_an_older_state_is_raised_and_a_newer_one_refused() -> None:
    chat, upcasters = Chat(), Upcasters()
    half, state = half_of(chat, 3)
    assert state is not None and half.schema == "chat/2"
    upcasters.add("chat/1", lambda old: {"said": old["messages"]})
    old = msgspec.structs.replace(half, schema="chat/1")
    give_back(chat, old, {"messages": ["hello"]}, upcasters)
    assert chat.said == ["hello"]
    with pytest.raises(Ineligible, match="upcaster"):
        give_back(chat, old, {"messages": []})
    with pytest.raises(NewerFormat):
        give_back(chat, msgspec.structs.replace(half, schema="chat/3"), {})
    with pytest.raises(Ineligible, match="other/2"):
        give_back(chat, msgspec.structs.replace(half, schema="other/2"), {})
    with pytest.raises(Ineligible, match="prefix"):
        give_back(chat, half_of(None, 3)[0], None)
    with pytest.raises(UsageError):
        upcasters.add("chat/1", lambda old: old)
    with pytest.raises(UsageError):
        upcasters.add("no version", lambda old: old)


costs = st.floats(0.001, 100)


@given(st.integers(1, 500), costs, st.integers(1, 50), costs, costs)
def test_the_cadence_costs_least(n: int, s: float, f: int, r: float, e: float) -> None:
    best = optimum(n, s, f, e)
    floor = cost(best, n, s, f, r, e)
    assert all(floor <= cost(k, n, s, f, r, e) * (1 + 1e-9) for k in (1, 2, 3, best + 1, best * 2, best * 10))
    cadence = Cadence(steps=n, forks=f)
    cadence.took(snapshot=s, event=e)
    chosen = cost(cadence.every, n, s, f, r, e)
    cheap = cadence.every == 1
    assert cheap or all(chosen <= cost(k, n, s, f, r, e) * (1 + 1e-9) for k in range(1, 2 * n + 2))


def test_the_cadence_is_every_step_where_that_is_cheap_and_always_at_gates() -> None:
    cadence = Cadence(steps=100, forks=1)
    assert cadence.every == 1, "nothing was measured yet"
    cadence.took(snapshot=CHEAP, event=0.001)
    assert cadence.every == 1
    dear = Cadence(steps=100, forks=1)
    dear.took(snapshot=3.0, event=1.0)
    assert dear.every == round(math.sqrt(600))
    due: Sequence[bool] = [dear.due() for _ in range(dear.every)]
    assert due == [*[False] * (dear.every - 1), True]
    assert [dear.due(gate=True), dear.due(effect=True), dear.due()] == [True, True, False]
