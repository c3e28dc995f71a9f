"""`--to html`: the panel with a run inside, as one page that opens by a double click, or as a folder for large ones.

The page is the built `viewer.html`; behind its app stand the bytes of a bundle in base64, those of its end first
(index, manifest, container), so that the first screen is there while the rest is still read:

    <meta name="worldline-bundle" content="<size>,<label>">
    <script type="text/plain" data-skn="<offset>,<length>">...</script>

In a folder, `index.html` has `<meta name="worldline-folder" content="<size>,<label>,<chunk bytes>">`, and chunk n
stands in `chunks/<n, six digits>.js`, which calls `__skn(offset, base64)`; only there the page's policy lets scripts of
its folder run. The bundle is packed first, as `pack` does: without `full` for sharing, so nothing restricted is in it.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from worldline.engine.pictures import thumbnail
from worldline.errors import UsageError, WorldlineError
from worldline.store.bundle.container import EXPIRY, INDEX
from worldline.store.bundle.pack import Watch, pack
from worldline.store.bundle.packed import PackedRecording
from worldline.store.newfile import new_file, new_folder, refuse_taken
from worldline.store.recording import Recording
from worldline.view.exported import Exported, bodies

CHUNK = 768 << 10  # bytes of the bundle in one script: 1 MiB of base64
LARGEST_PAGE = 400_000_000  # bytes of a bundle inside one page; browsers take long over more
_HEAD, _CHUNKS = "<!--worldline:head-->", "<!--worldline:chunks-->"
_POLICY = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; script-src '


def page(recording: Recording, target: Path, *, full: bool, folder: bool, watch: Watch) -> Exported:
    """Write the page, or with `folder` (or a bundle over `LARGEST_PAGE`) the folder `target` without its suffix.

    Raises `UsageError` where the target exists, and what `pack` raises for a run that cannot be packed.
    """
    shell = _shell()
    refuse_taken(_folder_of(target) if folder else target)
    with _bundle(recording, target.parent, full, watch) as packed:
        size, label = packed.source.size, _label(recording)
        if folder or size > LARGEST_PAGE:
            target = _folder_of(target)
            written = _write_folder(packed, target, shell, f"{size},{label}")
        else:
            written = _write_page(packed, target, shell, f"{size},{label}")
        return Exported("html", target, written, bodies(packed), sorted(packed.withheld), size, full, target.is_dir())


def _shell() -> str:
    """The built panel. Raises `WorldlineError` where this installation has none."""
    built = resources.files("worldline.view").joinpath("viewer.html")
    text = built.read_text("utf-8") if built.is_file() else ""
    if text.count(_HEAD) != 1 or text.count(_CHUNKS) != 1 or text.count(_POLICY) != 1:
        raise WorldlineError("the panel of this installation is incomplete; install worldline again", path=str(built))
    return text


@contextmanager
def _bundle(recording: Recording, place: Path, full: bool, watch: Watch) -> Iterator[PackedRecording]:
    """The bundle that goes into the page, in a folder of its own that is gone afterwards."""
    with TemporaryDirectory(prefix=".worldline-", suffix=".tmp", dir=place) as folder:
        packed = pack(recording, Path(folder) / "run.skn", share=not full, thumbnail=thumbnail, watch=watch)
        yield PackedRecording(str(packed.path))


def _write_page(packed: PackedRecording, target: Path, shell: str, content: str) -> int:
    before, after = shell.replace(_HEAD, _meta("worldline-bundle", content)).split(_CHUNKS)
    written = len(before.encode()) + len(after.encode())
    with new_file(target) as write:
        write(before.encode())
        for offset, length in _ranges(packed):
            data = base64.b64encode(packed.source.read(offset, length))
            script = b'<script type="text/plain" data-skn="%d,%d">%b</script>\n' % (offset, length, data)
            write(script)
            written += len(script)
        write(after.encode())
    return written


def _write_folder(packed: PackedRecording, target: Path, shell: str, content: str) -> int:
    index = shell.replace(_HEAD, _meta("worldline-folder", f"{content},{CHUNK}")).replace(_CHUNKS, "")
    index = index.replace(_POLICY, f"{_POLICY}'self' file: ")
    size, written = packed.source.size, len(index.encode())
    with new_folder(target) as folder:
        with new_file(folder / "index.html") as write:
            write(index.encode())
        (folder / "chunks").mkdir(mode=0o700)
        for number, offset in enumerate(range(0, size, CHUNK)):
            data = base64.b64encode(packed.source.read(offset, min(CHUNK, size - offset)))
            script = b'__skn(%d,"%b")\n' % (offset, data)
            with new_file(folder / "chunks" / f"{number:06d}.js") as write:
                write(script)
            written += len(script)
    return written


def _ranges(packed: PackedRecording) -> Iterator[tuple[int, int]]:
    """The bundle in ranges (offset, length): first the end, which is read first, then all before it in its order."""
    offsets = packed.container.offsets()
    first = next(name for name in (EXPIRY, INDEX) if name in packed.entries)
    tail = offsets[first] - packed.entries[first].header_size
    for begins, ends in ((tail, packed.source.size), (0, tail)):
        for offset in range(begins, ends, CHUNK):
            yield offset, min(CHUNK, ends - offset)


def _meta(name: str, content: str) -> str:
    return f'<meta name="{name}" content="{html.escape(content)}">'


def _label(recording: Recording) -> str:
    """What people call the run: the words of its result's name, and the end of its id."""
    named = recording.manifest.result["name"].removesuffix(".json") if recording.manifest is not None else "run"
    return f"{named} {recording.run_id[-4:]}"


def _folder_of(target: Path) -> Path:
    """The folder that stands for a page: its name without the suffix."""
    if target.suffix not in (".html", ".htm", ""):
        raise UsageError(f"{target} is no name of a page; give one that ends in .html", path=str(target))
    return target.with_suffix("")
