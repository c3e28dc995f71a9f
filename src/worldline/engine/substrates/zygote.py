"""Zygote: an environment that is a Python object, in a process of its own; a snapshot is a fork of that process.

The environment is what a factory (`module:name`) gives: a callable that takes an action and gives an observation, both
JSON. It works in the workspace, which the substrate `files` keeps at the same moment, so what is lost with this
process's memory is still there as files. What a fork would tear is refused, by name (`quiescence.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine.substrates.files import Files, FilesEnv
from worldline.engine.substrates.members import NAME, Member, Nursery, failed
from worldline.engine.substrates.states import AWAKE, STILL, Life, State
from worldline.engine.substrates.substrate import Caps, Launch, Policy, SnapRef, seed_of
from worldline.errors import (
    ReseedFailed,
    StaleBase,
    StateRefused,
    Unavailable,
)
from worldline.model.tree import Change

TIER = "process"
DEBT = ("rng", "openssl", "uuid", "hooks")


class Zygote:
    """Environments that `factory` makes (`module:name`; without one there are none). Files are kept in `store`."""

    name = NAME

    def __init__(self, store: Path, factory: str | None = None) -> None:
        self.files = Files(store)
        self.factory = factory
        self._kept: dict[str, Member] = {}
        self._open = 0
        self._caps: Caps | None = None

    def probe(self) -> Caps:
        """Whether this system can fork and tell when a process ends."""
        if self._caps is None:
            missing = [name for name in ("fork", "pidfd_open") if not hasattr(os, name)]
            why = f"this system has no {' and no '.join(missing)}" if missing or sys.platform != "linux" else None
            if why is None and self.factory is None:
                why = "no environment of this process is named: say which factory (module:name) makes it"
            kept = Caps(name=NAME, tier=TIER, shares_ram=True, distinct=("files", *DEBT), why_not=why)
            self._caps = msgspec.structs.replace(kept, lossy=self.files.probe().lossy)
        return self._caps

    def open(self, workspace: Path, policy: Policy) -> ZygoteEnv:
        """Make the environment, in the folder. Raises `Unavailable`, `EnvironmentFailed`."""
        if (why := self.probe().why_not) is not None or self.factory is None:
            raise Unavailable(f"zygote is not available: {why}", substrate=NAME, why=why)
        disk = self.files.open(workspace, policy)
        nursery = Nursery(self.factory, workspace)
        env = ZygoteEnv(self, disk, nursery.first, Life(str(workspace)))
        env.life.to(State.RUNNING)
        return env

    def fork(
        self, ref: SnapRef, n: int, *, branch_seed: str, identity: str, into: Sequence[Path] = ()
    ) -> list[ZygoteEnv]:
        """See the protocol. Raises `StaleBase` where the process that was kept has ended: its files can be forked."""
        kept = self.member(ref)
        disks = self.files.fork(on_disk(ref), n, branch_seed=branch_seed, identity=identity, into=into)
        try:
            members = kept.fork([disk.root for disk in disks], "gated")
        except BaseException:
            for disk in disks:
                disk.close()
            raise
        made = []
        for number, (disk, member) in enumerate(zip(disks, members, strict=True)):
            env = ZygoteEnv(self, disk, member, Life(f"{identity}-{number}", State.GATED))
            env.seed = seed_of(branch_seed, number)
            made.append(env)
        return made

    def member(self, ref: SnapRef) -> Member:
        """The process that was kept. Raises `StaleBase`."""
        kept = self._kept.get(ref.id)
        if kept is None or kept.has_ended:
            what = f"the process of {ref.id} has ended with what kept it; its files are in the store: fork them"
            raise StaleBase(what, ref=ref.id)
        return kept

    def opened(self) -> None:
        """One more environment is open."""
        self._open += 1

    def closed(self) -> None:
        """One less. With the last one the processes end that wait: what is forked later is forked from the files."""
        self._open -= 1
        if self._open == 0:
            for name in list(self._kept):
                self._kept.pop(name).end()

    def keep(self, ref: SnapRef, member: Member) -> None:
        """Remember the process of a snapshot."""
        self._kept[ref.id] = member

    def diff(self, a: SnapRef, b: SnapRef) -> list[Change]:
        """What differs in their files; of memory nothing is compared."""
        return self.files.diff(on_disk(a), on_disk(b))

    def export(self, ref: SnapRef) -> str:
        """Of its files. Memory is in no tree."""
        return self.files.export(on_disk(ref))

    def flatten(self, ref: SnapRef) -> SnapRef:
        """It stands on none."""
        return ref

    def pin(self, ref: SnapRef) -> None:
        """Its files; the process stays as long as this one."""
        self.files.pin(on_disk(ref))

    def unpin(self, ref: SnapRef) -> None:
        """Take the pin off."""
        self.files.unpin(on_disk(ref))

    def gc(self, keep: Sequence[SnapRef]) -> int:
        """Also ends the processes of snapshots that are not kept."""
        kept = {ref.id for ref in keep} | self.files.snapshots.pinned()
        for name in self._kept.keys() - kept:
            self._kept.pop(name).end()
        return self.files.gc([on_disk(ref) for ref in keep])


def on_disk(ref: SnapRef) -> SnapRef:
    """The half of a snapshot that the substrate `files` has."""
    return msgspec.structs.replace(ref, substrate="files", tier="disk")


class ZygoteEnv:
    """One environment: its process, and its workspace."""

    def __init__(self, zygote: Zygote, disk: FilesEnv, member: Member, life: Life) -> None:
        self._zygote = zygote
        self._disk = disk
        self._member = member
        self.life = life
        self.seed: str | None = None  # of a fork
        zygote.opened()

    @property
    def root(self) -> Path:
        """Its folder."""
        return self._disk.root

    @property
    def pid(self) -> int:
        """The process that the environment is in."""
        return self._member.pid

    @property
    def state(self) -> State:
        """What may be done with it now."""
        return self.life.state

    @contextmanager
    def quiesce(self) -> Iterator[None]:
        """The process does nothing but answer, so it is still."""
        with self.life.still():
            yield

    def snapshot(self, seq: int) -> SnapRef:
        """Keep files and memory, between two actions. Raises `NotQuiescent`, `Unsupported`, `ResourceExhausted`."""
        with self.life.still(), self._watched():
            (kept,) = self._member.fork([None], "kept")
            try:
                half = self._disk.snapshot(seq)
            except BaseException:
                kept.end()
                raise
            self.life.to(State.SNAPSHOTTED)
        ref = msgspec.structs.replace(half, substrate=NAME, tier=TIER, uniqueness_debt=DEBT)
        self._zygote.keep(ref, kept)
        return ref

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except Unavailable:
            self.life.to(State.LOST)
            raise

    def restore(self, ref: SnapRef) -> None:
        """See the protocol. The process is another one then."""
        self.life.expect(*AWAKE, *STILL, State.GATED, State.RESEEDED)
        kept = self._zygote.member(ref)
        self._disk.restore(on_disk(ref))
        left = self._member
        (self._member,) = kept.fork([self.root], "gated")
        left.end()
        self.life.to(State.GATED)

    def exec(self, action: Any) -> Any:
        """Give the environment an action. Raises `EnvironmentFailed`, `StateRefused`, `Unavailable`."""
        self.life.expect(*AWAKE)
        with self._watched():
            answer = self._member.ask(op="act", action=action)
        if "raised" in answer:
            raise failed("raised an exception", answer)
        if "refused" in answer:
            raise StateRefused(f"{self.life.name} is {answer['refused']}", state=answer["refused"], asked="live")
        return answer["value"]

    def launch(self, argv: Sequence[str]) -> Launch:
        """A command runs in its folder, and not in its process."""
        return self._disk.launch(argv)

    def reseed(self, seed: str) -> Sequence[str]:
        """Draw anew in the process. Raises `ReseedFailed`; the gate stays shut on both sides."""
        self.life.expect(State.GATED)
        answer = self._member.ask(op="reseed", seed=seed)
        if "failed" in answer:
            raise ReseedFailed(answer["failed"], **answer["facts"])
        if "refused" in answer:
            raise StateRefused(f"{self.life.name} is {answer['refused']}", state=answer["refused"], asked="reseeded")
        if self._disk.state is State.GATED:
            self._disk.reseed(seed)
        self.life.to(State.RESEEDED)
        return tuple(answer["what"])

    def open_gate(self) -> None:
        """Go live, on both sides."""
        self.life.expect(State.RESEEDED)
        answer = self._member.ask(op="open_gate")
        if "refused" in answer:
            raise StateRefused(f"{self.life.name} is {answer['refused']}", state=answer["refused"], asked="live")
        if self._disk.state is State.RESEEDED:
            self._disk.open_gate()
        self.life.to(State.LIVE)

    def close(self) -> None:
        """End the process, and let go of the folder."""
        if self.life.state is not State.CLOSED:
            self.life.to(State.CLOSED)
            self._member.end()
            self._zygote.closed()
            self._disk.close()
