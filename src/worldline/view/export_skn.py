"""`--to skn`: a bundle for sharing, as `worldline pack --share` makes it; with `full` as `worldline pack`."""

from __future__ import annotations

from pathlib import Path

from worldline.engine.pictures import thumbnail
from worldline.store.bundle.pack import Watch, pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.recording import Recording
from worldline.view.exported import Exported, bodies


def bundle(recording: Recording, target: Path, *, full: bool, folder: bool, watch: Watch) -> Exported:
    """Pack the run into `target`. Raises as `pack` does."""
    packed = pack(recording, target, share=not full, thumbnail=thumbnail, watch=watch)
    held = bodies(PackedRecording(str(target)))
    return Exported("skn", target, packed.size, held, packed.withheld, packed.size, full)
