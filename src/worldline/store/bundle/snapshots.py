"""What a bundle says of the snapshots of a run, from the rows that name them: `snapshots/<checkpoint>/meta.json`.

    {"run":...,"checkpoint_id":...,"parent_checkpoint_ids":[],"branch_id":...,"snapshot_id":...,"step":N,"seq":N,"t":N,
     "env_state":{type,ref,digest},"agent_state":{...},"side_effect_cursor":...}

It is derived: whoever verifies a bundle makes it again. Contents of the restricted tier stay references in it.
"""

from __future__ import annotations

from typing import Any

from worldline.errors import Damaged
from worldline.model.checkpoint import ROW
from worldline.model.events import Event, encode_json
from worldline.store import layout
from worldline.store.bundle.container import snapshot_name
from worldline.store.recording import Recording

_OWN = ("checkpoint_id", "parent_checkpoint_ids", "branch_id", "snapshot_id")


class Snapshots:
    """Fed with every row of a recording; gives the metadata of each snapshot once."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._run: Any = None
        self._seen: set[str] = set()

    def row(self, event: Event) -> tuple[str, bytes] | None:
        """The entry's name and bytes where this row is the first of a checkpoint, else None."""
        if event.name == "meta/header":
            self._run = event.data.get("run")
        if event.name != ROW:
            return None
        data = {key: self._opened(value) for key, value in event.data.items()}
        name = snapshot_name(str(data.get("checkpoint_id")))
        if name is None or name in self._seen:
            return None
        self._seen.add(name)
        meta = data.get("meta")
        said = {
            "run": self._run,
            **{key: data.get(key) for key in _OWN},
            "step": data.get("created_from_step"),
            "seq": event.seq,
            "t": event.t,
        }
        return name, encode_json({**said, **(meta if isinstance(meta, dict) else {}), **said}) + b"\n"

    def _opened(self, value: Any) -> Any:
        """A field that its row had no room for, from its content, where that is ordinary and here."""
        reference = value.get("$blob") if isinstance(value, dict) else None
        if not isinstance(reference, dict) or reference.get("tier", layout.ORDINARY) != layout.ORDINARY:
            return value
        try:
            return self._recording.loaded(value)
        except Damaged:
            return value
