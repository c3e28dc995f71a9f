"""`--to decisions` and `--to network`: what other tools read, as lines of JSON. No body and no content is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from worldline.engine import export as exporters
from worldline.errors import Ineligible
from worldline.store.bundle.pack import Watch
from worldline.store.newfile import new_file, refuse_taken
from worldline.store.recording import Recording
from worldline.store.verify import verify
from worldline.view.exported import Exported


def decisions(recording: Recording, target: Path, *, full: bool, folder: bool, watch: Watch) -> Exported:
    """OpenTelemetry spans of the run. Raises `Ineligible` where it does not verify, `UsageError` for a taken name."""
    return _lines("decisions", exporters.decisions, recording, target, watch)


def network(recording: Recording, target: Path, *, full: bool, folder: bool, watch: Watch) -> Exported:
    """HAR entries of the run's model calls. Raises as `decisions` does."""
    return _lines("network", exporters.network, recording, target, watch)


def _lines(
    name: str, make: Callable[[Recording], Iterator[bytes]], recording: Recording, target: Path, watch: Watch
) -> Exported:
    refuse_taken(target)
    verification = verify(recording, watch)
    if recording.manifest is None or not verification.ok:
        reasons = [problem.detail for problem in verification.problems] or ["it is not sealed"]
        raise Ineligible(f"cannot export {recording.path}: {reasons[0]}", reasons=reasons)
    size = 0
    with new_file(target) as write:
        for part in make(recording):
            write(part)
            size += len(part)
    return Exported(name, target, size, {}, [])
