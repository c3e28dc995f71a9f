"""What can have happened to a recording: cut off, a byte flipped, a row rewritten, contents lost, expired or withheld,
a writer killed, a format of the future. Each is made of a real one."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import worldline as wl
from tests.conftest import ROOT
from tests.panel.runs import make as made
from tests.panel.runs.api import TURNS
from tests.panel.runs.minds import bundled
from tests.panel.runs.talk import TOOLS, record
from tests.store import hostile
from worldline.engine import clock
from worldline.model import events
from worldline.store.bundle.container import EVENTS, INDEX, MANIFEST
from worldline.store.bundle.pack import pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.forget.retention import expire
from worldline.store.recording import Recording


def truncated(gui: Path, target: Path) -> None:
    """A download that broke off: the last third is not there, and with it everything that says what is where."""
    data = gui.read_bytes()
    target.write_bytes(data[: len(data) * 2 // 3])


def flipped_log(gui: Path, target: Path) -> None:
    """One bit of the packed log is another."""
    flip(gui, target, EVENTS)


def flipped_content(gui: Path, target: Path) -> None:
    """One bit of the last picture is another."""
    flip(gui, target, last_picture(gui))


def last_picture(bundle: Path) -> str:
    """The entry of the picture that the run ends with."""
    rows = [json.loads(line) for line in hostile.contents(bundle)[EVENTS].splitlines()]
    last = [row["data"]["value"]["$blob"]["name"] for row in rows if row["src"] == "screenshot"][-1]
    return f"resources/{last}.png"


def flip(bundle: Path, target: Path, entry: str) -> None:
    """Flip one bit in the middle of an entry's stored bytes."""
    packed, data = PackedRecording(str(bundle)), bytearray(bundle.read_bytes())
    data[packed.container.offsets()[entry] + packed.entries[entry].stored // 2] ^= 0x10
    target.write_bytes(data)


def changed(api: Path, target: Path) -> None:
    """Somebody rewrote a row and made the container fit; only the seal tells."""
    log = hostile.contents(api)[EVENTS]
    assert b'"cents":450' in log
    target.write_bytes(hostile.remade(api, {EVENTS: log.replace(b'"cents":450', b'"cents":950')}))


def missing(gui: Path, target: Path) -> None:
    """The last picture and its thumbnail are not in the file, and nothing says why."""
    name = last_picture(gui)
    thumb = name.replace("resources/", "thumbs/").replace(".png", ".webp")
    target.write_bytes(hostile.remade(gui, leave=[name, thumb]))


def future(api: Path, target: Path) -> None:
    """The same run as a later version might write it: another format's name, rows and fields that nobody knows yet."""
    found = hostile.contents(api)
    bodies = [line[: -events.SUFFIX] for line in found[EVENTS].splitlines(keepends=True)]
    bodies[0] = bodies[0].replace(b'"worldline/1"', b'"worldline/2"')
    [last] = bodies[-1:]
    seq = len(bodies) - 1
    new = b'{"seq":%d,"t":%d,"dt":0,"kind":"telepathy","src":"thought","v":2,"lane":"main","data":{"of":"somebody"}'
    bodies[-1:] = [
        new % (seq, json.loads(last + b"}")["t"]),
        last.replace(b'"seq":%d' % seq, b'"seq":%d' % (seq + 1), 1),
    ]
    log, said = hostile.chained(bodies)
    fields = json.loads(found[MANIFEST])
    del fields["seal"]
    fields |= said | {"format": "worldline/2", "unheard_of": {"yes": True}}
    fields["chunks"] = [[fields["chunks"][0][0], len(log), fields["chunks"][0][2]]]
    index = json.loads(found[INDEX]) | {"rows": said["rows"], "raw": said["bytes"]}
    line = hostile.sealed_line(fields)
    other = {EVENTS: log, MANIFEST: line, INDEX: hostile.spelled(index)}
    seal = line[-67:-3].decode()
    target.write_bytes(hostile.remade(api, other, lambda said: {**said, "seal": seal}))


def withheld(store: Path, target: Path) -> None:
    """Packed for sharing: what the restricted tool and the model were told is not in it."""
    spec = wl.RecordingSpec(restrict=("tool:orders.read",))
    run = record(store, "Refund a bulb of order 10-4472.", TURNS, spec=spec)
    pack(Recording(run), target, share=True)


def expired(store: Path, target: Path) -> None:
    """Contents whose retention is over."""
    spec = wl.RecordingSpec(restrict=("tool:orders.read",), retention={"ordinary": 3600, "restricted": 60})
    recording = Recording(record(store, "Refund a bulb of order 10-4472.", TURNS, spec=spec))
    assert recording.manifest is not None
    expire(recording, recording.manifest.sealed_at + 61 * 10**9, act=True)
    bundled(recording.path, target)


def killed(store: Path) -> Path:
    """An agent killed in the middle of a tool call: a directory without a seal."""
    command = [sys.executable, "-c", f"from {__name__} import die; die({str(store)!r})"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=240)
    assert done.returncode == -signal.SIGKILL, done.stderr
    [run] = store.glob("run_*")
    return run


def die(store: str) -> None:
    """Record until this process kills itself."""

    @wl.tool(name="machine.stop", effect="side_effecting")
    def stop() -> None:
        signal.raise_signal(signal.SIGKILL)

    def then() -> None:
        TOOLS["orders.read"](order="10-4471")
        stop()

    record(Path(store), "Refund a bulb, and die.", TURNS[:3] + TURNS[-1:], then=then)


MADE_OF: dict[str, tuple[str, Any]] = {
    "truncated": ("gui", truncated),
    "flipped-log": ("gui", flipped_log),
    "flipped-content": ("gui", flipped_content),
    "missing": ("gui", missing),
    "changed": ("api", changed),
    "future": ("api", future),
}


def make(folder: Path) -> list[Path]:
    """`damaged-*.skn`, and the directory `damaged-killed`."""
    paths = []
    for name, (kind, spoil) in MADE_OF.items():
        paths.append(target := folder / f"damaged-{name}.skn")
        if not target.exists():
            spoil(made(kind, folder)[0], target)
    for name, forget in (("withheld", withheld), ("expired", expired)):
        paths.append(target := folder / f"damaged-{name}.skn")
        if not target.exists():
            forget(folder / "runs", target)
    paths.append(target := folder / "damaged-killed")
    if not target.exists():
        place = folder / f".killed-{clock.token()}"
        killed(place).rename(target)
        shutil.rmtree(place)
    return paths
