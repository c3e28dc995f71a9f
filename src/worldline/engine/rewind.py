"""Rewind: a workspace goes back to a step, as far as the agent changed it; and the undo of that.

Before anything is touched the workspace is kept as it is (pinned, so no sweep takes it), and a journal says what will
be done: `<store>/.snapshots/rewinds/<id>.json`. Beside it stands `<id>.done`, and `<id>.undone` once it was taken back.
What a crash leaves in the middle is taken back by the same undo.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from worldline.engine import clock
from worldline.engine.checkpoints import Kept, checkpoints_of
from worldline.engine.lineage import opened, said_workspace
from worldline.engine.ownership import Interval, Left, Plan, Undoing, plan, shown
from worldline.engine.spec import WorkspaceSpec
from worldline.engine.substrates.apart import SECRET, Note, secret_notes
from worldline.engine.substrates.choose import substrate_of
from worldline.engine.substrates.files import Files
from worldline.engine.substrates.holders import holders
from worldline.engine.substrates.materialise import Materialiser
from worldline.engine.substrates.substrate import Policy, SnapRef
from worldline.errors import Busy, Damaged, Ineligible, UnknownStep, UsageError
from worldline.model import tree
from worldline.model.events import encode_json
from worldline.model.ids import is_id
from worldline.model.tree import Change, Entry, Folder, Text, bytes_of, text_of
from worldline.store import layout
from worldline.store.recording import Recording
from worldline.store.secrets.vault import MIN_LENGTH, Vault

FORMAT = "worldline-rewind/1"
HELD = "it held the secret {label}, so what it was is in no snapshot"


class Back(msgspec.Struct, frozen=True):
    """One path of a journal: what stood there before, and what was put there."""

    path: Text
    old: Entry | None
    new: Entry | None
    action: str
    step: int
    links: tuple[Text, ...] = ()


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """What a rewind does. `before` is the workspace as it was, `kept` what stays as it is.

    `labels` are those of the run's secrets: what holds one is in no snapshot, and stays.
    """

    format: str = FORMAT
    id: str
    run: str
    to: str
    workspace: str
    before: SnapRef
    exclude: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    changes: tuple[Back, ...] = ()
    kept: tuple[Left, ...] = ()
    undoes: str | None = None


class Rewind:
    """Takes back what the agent of a run did in its workspace from step `to` on. Nothing is touched until `act`.

    `workspace` is where it stands now, if not where it was recorded. Raises `Ineligible` where the run kept none or is
    still going on, `UnknownStep` where no checkpoint was taken at the step, `StaleBase` or `Corrupt` where one is gone.

    The values of the run's secrets are in `environment`, under their labels; `unknown` are the labels without one. What
    held a secret when the run was recorded is left alone without them, too.
    """

    def __init__(
        self, recording: Recording, to: str, workspace: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        if recording.live:
            raise _refused(f"{recording.path} is still being recorded: its agent would go on in what is taken back")
        said = said_workspace(recording)
        whole = opened(recording)
        kept = checkpoints_of(whole)
        if not kept or (said is None and workspace is None):
            raise _refused(f"{recording.path} kept no workspace: record with --workspace to be able to go back")
        spec = msgspec.convert(recording.loaded(said), WorkspaceSpec) if said is not None else None
        self.run, self.to = recording.run_id, to
        self.store = recording.run_directory.parent
        self.workspace = (workspace or Path(spec.path if spec is not None else "")).absolute()
        if not self.workspace.is_dir():
            raise UsageError(f"no folder {self.workspace}: say where the workspace is", path=str(self.workspace))
        self._exclude = spec.exclude if spec is not None else ()
        self._files = Files(self.store)
        self._substrate = substrate_of("git" if kept[-1].ref.substrate == "git" else "files", self.store)
        self._documents: dict[str, bytes] = {}
        self._labels = tuple(recording.header.data.get("secrets", {}).get("labels", ()))
        self._secrets = _vault(self._labels, environment or {})
        self.unknown = sorted(set(self._labels) - set(self._secrets.labels))
        self._apart = secret_notes(note for each in kept for note in each.ref.notes)
        before = self._looked()
        self.before = before
        self.plan = self._planned(kept, _target(kept, to), before)

    def _looked(self) -> SnapRef:
        """The workspace as it is, kept."""
        policy = Policy(store=self.store, exclude=self._exclude, secrets=self._secrets, apart=self._apart)
        env = self._substrate.open(self.workspace, policy)
        try:
            ref = env.snapshot(0)
        finally:
            env.close()
        return msgspec.structs.replace(ref, digest=self._substrate.export(ref))  # type: ignore[attr-defined]

    def _planned(self, kept: Sequence[Kept], target: int, before: SnapRef) -> Plan:
        self._files.pin(before)
        trees = [self._tree(each.ref) for each in kept[target:]]
        now = self._tree(before)
        intervals = [Interval(None, False, tree.diff(self._read, trees[-1], now))]
        for number in range(len(trees) - 1, 0, -1):
            later = kept[target + number]
            step = max(0, (later.step or 0) - 1)
            changes = tree.diff(self._read, trees[number - 1], trees[number])
            intervals.append(Interval(step, later.by is None, changes))
        apart = secret_notes((*self._apart, *before.notes))
        return _planned(intervals, apart, self._read, now)

    def _tree(self, ref: SnapRef) -> tree.Tree:
        substrate_of(ref.substrate, self.store).export(ref)  # type: ignore[attr-defined]
        return Materialiser(self._files.snapshots).read_tree(self._files.tree_of(ref))

    def _read(self, name: str) -> bytes:
        if name not in self._documents:
            self._documents[name] = self._files.snapshots.read(name)
        return self._documents[name]

    def journal(self) -> Journal:
        """What is going to be done."""
        return Journal(
            id=clock.new_id("rwd"),
            run=self.run,
            to=self.to,
            workspace=os.fspath(self.workspace),
            before=self.before,
            exclude=self._exclude,
            labels=self._labels,
            changes=tuple(_back(each) for each in self.plan.undoing),
            kept=tuple(self.plan.left),
        )

    def act(self, *, force: bool = False) -> Journal:
        """Do it. Raises `Busy` where programs have files open that go back (not with `force`), `Corrupt`."""
        journal = self.journal()
        carry_out(self._files, journal, force=force)
        return journal

    def leave(self) -> None:
        """Do nothing: what was kept for it goes with the next sweep."""
        self._files.unpin(self.before)


def carry_out(files: Files, journal: Journal, *, force: bool = False) -> None:
    """Do what a journal says, which is durable before. Nothing is touched where a content is damaged."""
    workspace = Path(journal.workspace)
    changes = [_change(back) for back in journal.changes]
    if not force:
        _refuse_open(workspace, changes)
    maker = Materialiser(files.snapshots)
    maker.check(changes)
    folder = files.snapshots.place / "rewinds"
    layout.make_private(folder, shared=True)
    layout.write_durable(folder / f"{journal.id}.json", encode_json(journal) + b"\n")
    maker.apply(workspace, changes)
    layout.write_durable(folder / f"{journal.id}.done", b"")


def undo(
    store: Path,
    rewind: str | None = None,
    *,
    dry_run: bool = False,
    force: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Journal:
    """Take a rewind back (the last one that was not taken back yet). What somebody changed since stays.

    `environment` has the values of the run's secrets, as for `Rewind`.

    Raises `UsageError` where there is none, and what `carry_out` raises.
    """
    files = Files(store)
    taken_back = journal_of(store, rewind or _last(store))
    workspace = Path(taken_back.workspace)
    if not workspace.is_dir():
        raise UsageError(f"no folder {workspace}, which {taken_back.id} was about", path=str(workspace))
    secrets, apart = _vault(taken_back.labels, environment or {}), secret_notes(taken_back.before.notes)
    env = files.open(workspace, Policy(store=store, exclude=taken_back.exclude, secrets=secrets, apart=apart))
    try:
        before = env.snapshot(0)
    finally:
        env.close()
    now = Materialiser(files.snapshots).read_tree(files.tree_of(before))
    done = [Change(bytes_of(b.path), b.old, b.new, new_links=tuple(map(bytes_of, b.links))) for b in taken_back.changes]
    found = _planned([Interval(0, True, done)], secret_notes(before.notes), files.snapshots.read, now)
    journal = Journal(
        id=clock.new_id("rwd"),
        run=taken_back.run,
        to=taken_back.to,
        workspace=taken_back.workspace,
        before=before,
        exclude=taken_back.exclude,
        labels=taken_back.labels,
        changes=tuple(_back(each) for each in found.undoing),
        kept=tuple(found.left),
        undoes=taken_back.id,
    )
    if not dry_run:
        carry_out(files, journal, force=force)
        layout.write_durable(files.snapshots.place / "rewinds" / f"{taken_back.id}.undone", b"")
        files.unpin(taken_back.before)
    return journal


def _vault(labels: Sequence[str], environment: Mapping[str, str]) -> Vault:
    """The secrets of a run whose values are at hand."""
    values = {label: environment.get(label, "") for label in labels}
    return Vault({label: value for label, value in values.items() if len(value.encode()) >= MIN_LENGTH})


def _planned(
    intervals: Sequence[Interval], apart: Sequence[Note], read: Callable[[str], bytes], now: tree.Tree
) -> Plan:
    """What goes back. What held a secret at any time was not kept then, so it stays as it is."""
    paths = {note["path"]: note[SECRET] for note in apart}
    changed = {change.path for each in intervals if each.agents for change in each.changes}
    left = [Left(text_of(path), HELD.format(label=paths[shown(path)])) for path in changed if shown(path) in paths]
    kept = [
        msgspec.structs.replace(each, changes=[change for change in each.changes if shown(change.path) not in paths])
        for each in intervals
    ]
    found = plan(kept, lambda path: tree.at_path(read, now, path), _inside(read, now))
    return Plan(found.undoing, sorted([*found.left, *left], key=lambda each: bytes_of(each.path)))


def _inside(read: Callable[[str], bytes], now: tree.Tree) -> Callable[[bytes], list[bytes]]:
    """What a folder of the workspace holds as it is now, by its path."""

    def inside(path: bytes) -> list[bytes]:
        folder = tree.at_path(read, now, path)
        entries = tree.entries_of(read, folder) if isinstance(folder, Folder) else ()
        return [path + b"/" + bytes_of(entry.name) for entry in entries]

    return inside


def journal_of(store: Path, rewind: str) -> Journal:
    """The journal of a rewind. Raises `UsageError` where there is none, `Damaged`."""
    path = Files(store).snapshots.place / "rewinds" / f"{rewind}.json"
    if not is_id(rewind, "rwd") or not path.is_file():
        raise UsageError(f"no rewind {rewind!r:.60} in {store}", rewind=rewind)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Journal)
    except msgspec.DecodeError as error:
        raise Damaged(f"{path}: the journal cannot be read: {error}", file=str(path)) from None


def _last(store: Path) -> str:
    folder = Files(store).snapshots.place / "rewinds"
    names = sorted((path.stem for path in folder.glob("rwd_*.json")), reverse=True) if folder.is_dir() else []
    for name in names:
        if not (folder / f"{name}.undone").exists() and journal_of(store, name).undoes is None:
            return name
    raise UsageError(f"nothing to undo in {store}: no rewind was made there, or each was taken back")


def _target(kept: Sequence[Kept], to: str) -> int:
    """Which checkpoint a place names: `step:6`, as it stood when step 6 began."""
    word, _, number = to.rpartition(":")
    if word not in ("", "step") or not number.isdecimal():
        raise UsageError(f"a place to go back to is step:6, not {to!r}", at=to)
    for index, each in enumerate(kept):
        if each.step == int(number) and each.by is None:
            return index
    steps = sorted({each.step for each in kept if each.step is not None and each.by is None})
    there = f"there are those of step {', '.join(map(str, steps))}" if steps else "there is none"
    raise UnknownStep(f"no checkpoint was taken at step {number}: {there}", at=to)


def _refuse_open(workspace: Path, changes: Sequence[Change]) -> None:
    """Raise `Busy` where a program has a file open that would be taken away under it."""
    root = os.path.realpath(workspace)
    touched = {os.path.join(root, os.fsdecode(c.path)) for c in changes if c.old is not None and not _is_folder(c)}
    held = {pid: sorted(touched.intersection(paths)) for pid, paths in holders(workspace).items()} if touched else {}
    held = {pid: paths for pid, paths in held.items() if paths}
    if held:
        paths = sorted({path for each in held.values() for path in each})
        ids = ", ".join(map(str, sorted(held)))
        raise Busy(
            f"process {ids} has files open that would go back, {paths[0]} among them: end it, or say --force",
            pids=sorted(held),
            fds=paths,
        )


def _is_folder(change: Change) -> bool:
    return isinstance(change.old, Folder)


def _back(undoing: Undoing) -> Back:
    change = undoing.change
    links = tuple(map(text_of, change.new_links))
    return Back(text_of(change.path), change.old, change.new, undoing.action, undoing.step, links)


def _change(back: Back) -> Change:
    return Change(bytes_of(back.path), back.old, back.new, new_links=tuple(map(bytes_of, back.links)))


def _refused(reason: str) -> Ineligible:
    return Ineligible(reason, reasons=[reason])


def told(journal: Journal, *, dry_run: bool) -> dict[str, Any]:
    """A journal as `--json` shows it."""
    return {
        "id": None if dry_run else journal.id,
        "run": journal.run,
        "to": journal.to,
        "workspace": journal.workspace,
        "dry_run": dry_run,
        "undoes": journal.undoes,
        "changes": [{"path": shown(bytes_of(b.path)), "action": b.action, "step": b.step} for b in journal.changes],
        "kept": [{"path": shown(bytes_of(each.path)), "why": each.why} for each in journal.kept],
    }
