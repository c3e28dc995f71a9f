"""Unpacking: a bundle becomes a run of a store again, which can be forked, resumed and studied like those made there.

Every sealed byte comes back as it was: the log in the chunks that the manifest lists, each content under its name, and
what stands beside the seal. It is built under a temporary name, verified there, and moved into place whole. The
published result is a file of its own, as in a copy of a store: that this attempt published it cannot be seen from a
bundle, so a strict replay refuses it still.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from worldline.errors import Damaged, Ineligible, UsageError
from worldline.model.manifest import Manifest
from worldline.store import layout, signature
from worldline.store.blobs import BlobStore
from worldline.store.bundle.container import SNAPSHOTS
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget import quarantine
from worldline.store.notes import stored
from worldline.store.recording import Recording
from worldline.store.seal import alone, attest, result_out
from worldline.store.verify import verify

STEP = 1 << 20
Watch = Callable[[int], None]


class Unpacked(NamedTuple):
    """The run that a bundle became. `fresh` is False where the store had it already.

    `beside` counts the attempts of the same run that were there before, `checkpoints` those whose files did not come
    along: a bundle holds what is said of them.
    """

    recording: Recording
    fresh: bool
    beside: int
    checkpoints: int


def unpack(bundle: PackedRecording, store: Path, watch: Watch = lambda size: None) -> Unpacked:
    """Make a bundle a run of `store`, under its own id. `watch` is told of the bytes of the log: each is read twice.

    A store that has the same recording already is left as it is, and told so. Another attempt of a run that is there is
    put beside those, if they are sealed and of its session. Raises `Ineligible` for a bundle that does not verify or is
    not whole, `UsageError` where another recording stands in its place, `Contained` where that was contained.
    """
    manifest = _whole(bundle, watch)
    checkpoints = sum(entry.name.startswith(SNAPSHOTS) for entry in bundle.container.entries)
    run = store / manifest.run
    attempt = run / layout.ATTEMPTS / manifest.attempt
    quarantine.refuse_moved(attempt)
    beside = sum(other.name != attempt.name for other in layout.attempts(run))
    layout.make_private(store, shared=True)
    layout.keep_out_of_git(store)
    if not attempt.is_dir():
        _refuse_others(run, manifest)  # before the work; and again where nothing can change any more
        with _place_to_build(run) as temporary:
            _build(bundle, manifest, temporary / layout.ATTEMPTS / manifest.attempt, store / layout.POOL)
            _refuse_unfit(bundle, Recording(temporary / layout.ATTEMPTS / manifest.attempt), watch)
            fresh = _placed(temporary, run, manifest)
    else:
        fresh = False
    there = Recording(attempt)
    if there.fingerprint != bundle.fingerprint:
        raise UsageError(f"{attempt} is another recording under the same id; nothing is overwritten", path=str(attempt))
    with alone(run / layout.ATTEMPTS):
        _publish(there, manifest)
    return Unpacked(there, fresh, beside, checkpoints)


def _whole(bundle: PackedRecording, watch: Watch) -> Manifest:
    """The manifest of a bundle from which a whole attempt can be made. Raises `Ineligible`."""
    _refuse_unfit(bundle, bundle, watch)
    manifest = bundle.manifest
    assert manifest is not None, "what verifies is sealed"
    if bundle.container.withheld:
        left = len(bundle.container.withheld)
        raise _refused(bundle, f"{left:,} of its contents were left out (`pack --share`); unpack one that has them")
    if manifest.torn is not None:
        raise _refused(
            bundle, "what a crash tore off its log was sealed, and is not in a bundle; copy the run's folder"
        )
    return manifest


def _refuse_unfit(bundle: PackedRecording, recording: Recording, watch: Watch) -> None:
    verification = verify(recording, watch)
    if not verification.ok:
        first = verification.problems[0]
        raise _refused(bundle, f"it does not verify: {first.kind} at {first.where}: {first.detail}")


def _refused(bundle: PackedRecording, why: str) -> Ineligible:
    return Ineligible(f"cannot unpack {bundle.source.name}: {why}", reasons=[why])


@contextmanager
def _place_to_build(run: Path) -> Iterator[Path]:
    """A folder beside the run's place, held until it has been moved there, or is removed."""
    with ExitStack() as held:
        with alone(run.parent):
            for left in run.parent.glob(f".{run.name}.*.tmp"):
                if not layout.is_held(left):  # its maker was killed
                    shutil.rmtree(left, ignore_errors=True)
            temporary = Path(tempfile.mkdtemp(prefix=f".{run.name}.", suffix=".tmp", dir=run.parent))
            held.enter_context(alone(temporary))
        try:
            yield temporary
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _build(bundle: PackedRecording, manifest: Manifest, attempt: Path, pool: Path) -> None:
    """Write every file of the attempt, and beside it what its run publishes. All of it is durable then."""
    layout.make_private(attempt / layout.CHUNKS)
    with bundle.log().open("rb") as log:
        for name, size, _ in manifest.chunks:
            descriptor = layout.create(attempt / layout.CHUNKS / name)
            try:
                while size and (part := log.read(min(STEP, size))):
                    layout.write_all(descriptor, part)
                    size -= len(part)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    _contents(bundle, manifest, attempt, pool)
    os.close(layout.create(attempt / layout.LOCK))
    line = bundle.manifest_line
    files = {
        layout.OPEN: layout.opened(bundle.header.data),
        layout.RESULT: bundle.index.result.encode("utf-8", "surrogatepass"),
        layout.STAGED: line,
        **{name: stored(bundle, name) for name in (layout.EXPIRY, *layout.BESIDE)},
    }
    for name, data in files.items():
        if data:
            layout.write_durable(attempt / name, data)
    attest(attempt)
    made = Recording(attempt)
    _publish(made, manifest)
    vouching, place = signature.signature_path(bundle), signature.signature_path(made)
    if vouching is not None and place is not None and (said := layout.read_bounded(vouching, signature.LARGEST)):
        layout.write_durable(place, said)
    for folder in (made.run_directory, *(path for path in made.run_directory.rglob("*") if path.is_dir())):
        layout.sync_directory(folder)


def _contents(bundle: PackedRecording, manifest: Manifest, attempt: Path, pool: Path) -> None:
    """Every content that the bundle has; the others expired before it was packed."""

    def key() -> bytes:
        if bundle.tier_key is None:
            where = bundle.source.name
            raise Damaged(f"{where} has restricted contents and no key to them", file=where)
        return bundle.tier_key

    blobs = BlobStore(attempt, key, pool)
    if bundle.tier_key is not None:
        blobs.tier_key()
    for name, size, media_type, tier, _ in manifest.blobs:
        reference = {"name": name, "size": size, "type": media_type, "tier": tier}
        if bundle.entry_of(reference) is not None:
            blobs.put(bundle.stream_blob(reference), media_type, tier)


def _publish(recording: Recording, manifest: Manifest) -> None:
    """Put the result where people look, as a file of its own; nothing where one stands there, or none was published."""
    if manifest.result["publish"] != "none" and result_out(recording.run_directory) is None:
        result = recording.run_directory / manifest.result["name"]
        layout.write_durable(result, (recording.attempt / layout.RESULT).read_bytes())


def _placed(temporary: Path, run: Path, manifest: Manifest) -> bool:
    """Move what was built to its place. False where somebody else put it there meanwhile."""
    with alone(run.parent):
        if not os.path.lexists(run):
            os.rename(temporary, run)
            layout.sync_directory(run.parent)
            return True
    attempts = run / layout.ATTEMPTS
    layout.make_private(attempts, shared=True)
    with alone(attempts):
        if (attempts / manifest.attempt).is_dir():
            return False
        _refuse_others(run, manifest)
        # The signature first, the result last: who was killed in between comes again, and publishes what is missing.
        for signed in temporary.glob("*.sig"):
            os.rename(signed, run / signed.name)
        os.rename(temporary / layout.ATTEMPTS / manifest.attempt, attempts / manifest.attempt)
        for result in temporary.glob("*.json"):
            os.rename(result, run / result.name)
        layout.sync_directory(attempts)
        layout.sync_directory(run)
    return True


def _refuse_others(run: Path, manifest: Manifest) -> None:
    """Raise `UsageError` where the attempts that the run has here let no further one stand beside them."""
    quarantine.refuse(run, manifest.attempt)
    for attempt in layout.attempts(run):
        other = Recording(attempt)
        if other.manifest is None:
            how = "it is being recorded" if other.live else "`worldline reconcile` seals it"
            raise UsageError(f"{run.name} has an attempt here that is not sealed: {how}", path=str(attempt))
        if other.manifest.session != manifest.session:
            raise UsageError(f"{run.name} is another run here, of another session", path=str(attempt))
    taken = result_out(run)
    if taken is not None and manifest.result["publish"] != "none":
        raise UsageError(f"{taken} is already published by another attempt of this run", path=str(taken))
