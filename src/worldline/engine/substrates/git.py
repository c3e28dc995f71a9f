"""The substrate `git`: snapshots are commits in the user's repository, under `refs/worldline/`, by an index of ours.

HEAD, the index, the stash, hooks and all other refs stay as they are. Contents are kept to the byte, whatever line ends
or filters the repository declares. A tree of git has no empty folders, attributes and hard links, of modes one bit, and
not what git ignores: all this is said, and left alone by a restore. A fork, a difference and a restore go through the
content-addressed form, into which a commit is brought when it is first asked for.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path

import msgspec

from worldline.engine import clock
from worldline.engine.substrates.apart import Apart, Note
from worldline.engine.substrates.files import Files, FilesEnv, Taken
from worldline.engine.substrates.folder import FolderEnv
from worldline.engine.substrates.git_tree import LINK, NESTED, imported, surroundings
from worldline.engine.substrates.holders import holders
from worldline.engine.substrates.materialise import Materialiser
from worldline.engine.substrates.scan import own_folders, told
from worldline.engine.substrates.states import AWAKE, STILL, Life, State
from worldline.engine.substrates.substrate import Caps, Policy, SnapRef
from worldline.errors import Busy, ResourceExhausted, SecretFound, StaleBase, SubstrateError, Unavailable
from worldline.model import tree
from worldline.model.events import encode_json
from worldline.model.tree import Change
from worldline.store import layout
from worldline.store.snapshots import FULL, SnapshotStore, exhausted

REFS = "refs/worldline"
_LOSSY = (
    "empty folders",
    "attributes",
    "hard links",
    "modes but the executable bit",
    "times",
    "files that git ignores",
    "nested repositories",
)
_WHO = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "worldline"), ("EMAIL", "worldline@localhost"))
}
_CONVERTS = ("text", "eol", "ident", "working-tree-encoding", "crlf")
_TRIES = 4


class Git:
    """Snapshots of folders that are the top of a git repository."""

    name = "git"

    def __init__(self, store: Path) -> None:
        self.files = Files(store)
        self._why: str | None = None

    def probe(self) -> Caps:
        """It can be had where git can be run."""
        if self._why is None:
            try:
                done = subprocess.run(["git", "--version"], capture_output=True, check=False)
                self._why = "" if done.returncode == 0 else "git cannot be run"
            except OSError:
                self._why = "git is not installed"
        return Caps(name=self.name, tier="disk", durable=True, lossy=_LOSSY, why_not=self._why or None)

    def open(self, workspace: Path, policy: Policy) -> GitEnv:
        """Take charge of a folder that is the top of a repository. Raises `Unavailable` for any other."""
        caps = self.probe()
        if caps.why_not is None and not (workspace / ".git").exists():
            caps = msgspec.structs.replace(caps, why_not=f"{workspace} is not the top of a git repository")
        if caps.why_not is not None:
            raise Unavailable(f"git: {caps.why_not}", substrate=self.name, why=caps.why_not)
        env = GitEnv(self, workspace, policy)
        env.life.to(State.RUNNING)
        return env

    def fork(
        self, ref: SnapRef, n: int, *, branch_seed: str, identity: str, into: Sequence[Path] = ()
    ) -> list[FilesEnv]:
        """`n` folders that hold what the commit holds; they are no repositories."""
        self.export(ref)
        return self.files.fork(ref, n, branch_seed=branch_seed, identity=identity, into=into)

    def diff(self, a: SnapRef, b: SnapRef) -> list[Change]:
        """What differs of what git keeps, by path."""
        self.export(a)
        self.export(b)
        return self.files.diff(a, b)

    def export(self, ref: SnapRef) -> str:
        """Bring the commit into the content-addressed form, once. Raises `StaleBase` where it is gone."""
        taken = self.files.record(ref)
        if taken.tree is None:
            said = taken.git or {}
            repository = Repository(Path(said.get("repository", "")), self.files.store)
            with self.files.snapshots.writing() as batch:
                scanned = imported(repository, said.get("commit", ""), batch)
            taken = self.files.amend(taken, scanned)
        assert taken.snapshot.digest is not None, "brought in right above, or before"
        return taken.snapshot.digest

    def flatten(self, ref: SnapRef) -> SnapRef:
        """A commit of ours has no parents."""
        return ref

    def pin(self, ref: SnapRef) -> None:
        """Keep it whatever `gc` finds."""
        self.files.pin(ref)

    def unpin(self, ref: SnapRef) -> None:
        """Take the pin off."""
        self.files.unpin(ref)

    def gc(self, keep: Sequence[SnapRef]) -> int:
        """Drop snapshots, and our refs to their commits; git itself removes what nothing refers to then."""
        kept = {ref.id for ref in keep} | self.files.snapshots.pinned()
        for name in self.files.snapshots.taken():
            taken = self.files.read(name)
            if name not in kept and taken.git is not None and (where := Path(taken.git["repository"])).is_dir():
                Repository(where, self.files.store).run("update-ref", "-d", f"{REFS}/{name}")
        return self.files.gc(keep)


class GitEnv(FolderEnv):
    """A folder that is the top of a repository."""

    def __init__(self, git: Git, root: Path, policy: Policy) -> None:
        super().__init__(root, Life(str(root)))
        self.git = git
        self.policy = policy
        self.repository = Repository(root, policy.store, policy.exclude, Apart(policy.secrets, policy.apart))

    def snapshot(self, seq: int) -> SnapRef:
        """Keep what git keeps of the workspace as it is behind row `seq`."""
        with self.quiesce():
            written, still = self.repository.settled(self.policy.rereads)
            moving = () if still else ({"path": ".", "why": "files changed each time they were read"},)
            ref = SnapRef(
                id=clock.new_id("snap"),
                substrate=self.git.name,
                seq=seq,
                tier="disk",
                parent=self._last,
                notes=(*self.repository.notes(), *moving, *self.repository.secret),
            )
            commit = self.repository.commit(ref.id, f"worldline: behind row {seq}", written)
            said = {"repository": os.fspath(self.root.resolve()), "commit": commit}
            taken = Taken(snapshot=ref, tree=None, git=said, exclude=self.policy.exclude)
            self.git.files.snapshots.publish(ref.id, encode_json(taken) + b"\n")
            self.life.to(State.SNAPSHOTTED)
        self._last = ref.id
        return ref

    def restore(self, ref: SnapRef) -> None:
        """Make what git keeps of it what it was; what git does not keep stays as it is."""
        self.life.expect(*AWAKE, *STILL, State.GATED, State.RESEEDED)
        files = self.git.files
        self.git.export(ref)
        with files.snapshots.held():
            maker = Materialiser(files.snapshots)
            target = maker.read_tree(files.tree_of(ref))
            with files.snapshots.writing() as batch:
                scanned = imported(self.repository, self.repository.written(), batch)
            maker.apply(self.root, tree.diff(files.snapshots.read, maker.read_tree(scanned.tree), target))
        self.life.to(State.GATED)
        self._last = ref.id


# What git says of a full disk: in the system's words, or where it writes an index or an object, in its own.
_FULL = {**{errno.errorcode[number]: os.strerror(number) for number in FULL}, "ENOSPC ": "Out of diskspace"}


class Repository:
    """A user's repository, to which only objects and refs of ours are added."""

    def __init__(self, root: Path, store: Path, exclude: Sequence[str] = (), apart: Apart | None = None) -> None:
        self.root = root
        self._apart = apart or Apart(None, ())
        self._secret: dict[bytes, Note] = {}
        self._looked_through = False  # whether what the index held before was
        SnapshotStore(store).make()
        inside = [
            os.path.relpath(own, root) for own in map(Path.resolve, own_folders(store)) if own.is_relative_to(root)
        ]
        self._without = [f":(exclude,top,glob){path}" for path in exclude]
        self._without += [f":(exclude,top,literal){path}" for path in inside]
        digest = tree.name_of(os.fsencode(os.path.realpath(root)))
        self._index = store.absolute() / ".snapshots" / "git" / f"{digest}.index"

    def run(self, *words: str, data: bytes | None = None, more: Mapping[str, str] | None = None) -> bytes:
        """What git says. It runs nothing that the repository declares: no hook, no filter, no monitor.

        Raises `StaleBase` where the repository is gone, `SubstrateError` with git's own words, which is
        `ResourceExhausted` where a disk is full.
        """
        if not (self.root / ".git").exists():
            raise StaleBase(f"the repository {self.root} is gone", ref=str(self.root))
        argv = ["git", *(word for name in _QUIET + self._filters for word in ("-c", name)), *words]
        done = subprocess.run(
            argv, cwd=self.root, env={**surroundings(), **(more or {})}, input=data, capture_output=True, check=False
        )
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip() or f"exit {done.returncode}"
            what = f"git {words[0]} in {self.root}: {said}"
            full = next((name for name, words in _FULL.items() if words in said), None)
            if full is not None:
                raise ResourceExhausted(what, resource=full.strip(), path=str(self.root))
            raise SubstrateError(what, path=str(self.root))
        return done.stdout

    @cached_property
    def _filters(self) -> tuple[str, ...]:
        """Settings that turn off every filter which the user's configuration has."""
        asked = ["git", "config", "--name-only", "--get-regexp", r"^filter\."]
        done = subprocess.run(asked, cwd=self.root, env=surroundings(), capture_output=True, check=False)
        names = {line.rpartition(".")[0] for line in done.stdout.decode("utf-8", "replace").splitlines()}
        return tuple(f"{name}.{key}" for name in sorted(names) for key in ("clean=", "process=", "required=false"))

    def written(self) -> str:
        """Write what git keeps of the folder as it is now. Returns the tree's object."""
        own = {"GIT_INDEX_FILE": os.fspath(self._index)}
        with ExitStack() as alone:
            with exhausted("the snapshot", self._index.parent):
                layout.make_private(self._index.parent, shared=True)
                alone.enter_context(layout.locked(self._index.with_suffix(".held")))
            self._index.with_suffix(".index.lock").unlink(
                missing_ok=True
            )  # of a git that was killed: the index is ours
            self._keep_apart(own)
            self._add(own)
            self._to_the_byte(own)
            return self.run("write-tree", more=own).decode().strip()

    @property
    def secret(self) -> tuple[Note, ...]:
        """The notes of what is left out for a secret in it."""
        return tuple(note for _, note in sorted(self._secret.items()))

    def _keep_apart(self, own: Mapping[str, str]) -> None:
        """Look through what git would read now, at first through all that it has; what holds a secret is left out."""
        if not self._apart.active:
            return
        which = ("--modified", "--others") if self._looked_through else ("--cached", "--others")
        words = ("ls-files", "-z", *which, "--exclude-standard", "--", ".", *self._without)
        asked = {*filter(None, self.run(*words, more=own).split(b"\0")), *self._secret}
        self._secret = {path: note for path in asked if (note := self._note(os.fsdecode(path))) is not None}
        self._looked_through = True
        if self._secret:
            self.run("update-index", "--force-remove", "-z", "--stdin", data=b"\0".join(self._secret) + b"\0", more=own)

    def _note(self, path: str) -> Note | None:
        """The note of a file that holds a secret, in itself or in its name; None for any other."""
        shown = told(path)
        parts = path.split("/")
        for number in range(1, len(parts) + 1):
            if note := self._apart.by_name("/".join(parts[:number]), told("/".join(parts[:number]))):
                return note
        place = os.path.join(self.root, path)
        try:
            if os.path.islink(place):
                self._apart.refuse(os.fsencode(os.readlink(place)))
            elif os.path.isfile(place):
                self._apart.look_through(lambda: os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        except SecretFound as error:
            return self._apart.found(path, shown, error, None)
        except OSError:  # it is gone, or cannot be read: then git cannot, either, and says so
            return None
        return None

    def _add(self, own: Mapping[str, str]) -> None:
        """Take all into the index. Raises `Busy` where files change whenever git reads them, which it refuses."""
        for left in reversed(range(_TRIES)):
            try:
                literal = [os.fsdecode(b":(exclude,top,literal)" + path) for path in self._secret]
                self.run("add", "--all", "--", ".", *self._without, *literal, more=own)
            except ResourceExhausted:
                raise
            except SubstrateError as error:
                if left:
                    continue
                if held := holders(self.root):
                    paths = sorted({path for each in held.values() for path in each})
                    raise Busy(f"{error}: processes write there", pids=sorted(held), fds=paths) from None
                raise
            return

    def settled(self, most: int) -> tuple[str, bool]:
        """The tree that two readings in a row agree on, or the last of `most` and one, and whether they agreed."""
        before = self.written()
        for _ in range(most):
            found = self.written()
            if found == before:
                return found, True
            before = found
        return before, False

    def commit(self, name: str, message: str, written: str) -> str:
        """Commit a tree under a ref of ours."""
        commit = self.run("commit-tree", "--no-gpg-sign", "-m", message, written, more=_WHO).decode().strip()
        self.run("update-ref", f"{REFS}/{name}", commit, "")
        return commit

    def notes(self) -> tuple[dict[str, str], ...]:
        """What of the folder git does not keep: ignored files, by their topmost folder."""
        said = self.run(
            "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", *self._all
        )
        return tuple({"path": told(os.fsdecode(p)), "why": "not kept: git ignores it"} for p in said.split(b"\0") if p)

    @property
    def _all(self) -> list[str]:
        return [".", *self._without]

    def _to_the_byte(self, own: Mapping[str, str]) -> None:
        """Put files in as they are that git would convert by their attributes (line ends and the like)."""
        listed = self.run("ls-files", "-z", "--stage", more=own).split(b"\0")[:-1]
        entries = {path: head.split(b" ") for head, _, path in (line.partition(b"\t") for line in listed)}
        if not entries or not any(os.path.basename(path) == b".gitattributes" for path in entries):
            return
        said = self.run("check-attr", "-z", "--stdin", *_CONVERTS, data=b"\0".join(entries) + b"\0").split(b"\0")
        asked = zip(said[0::3], said[2::3], strict=False)
        converted = sorted(
            {path for path, value in asked if value not in (b"unspecified", b"unset") and b"\n" not in path}
        )
        plain = [path for path in converted if entries[path][0] not in (LINK, NESTED)]
        if not plain:
            return
        words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        names = self.run(*words, data=b"\n".join(plain) + b"\n").split()
        lines = (b"%b %b\t%b\0" % (entries[path][0], name, path) for path, name in zip(plain, names, strict=True))
        self.run("update-index", "-z", "--index-info", data=b"".join(lines), more=own)


_QUIET = (
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "gc.auto=0",
    "advice.addEmbeddedRepo=false",
)
