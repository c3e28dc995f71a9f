"""What a run can be given away as: the registry of formats, one format a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from worldline.errors import UsageError
from worldline.store.recording import Recording
from worldline.view.export_html import page
from worldline.view.export_lines import decisions, network
from worldline.view.export_skn import bundle
from worldline.view.exported import Exported

Watch = Callable[[int], None]
Writer = Callable[..., Exported]


class Format(NamedTuple):
    """One format: what it is in a few words, the ending of its files, and what writes it.

    `write(recording, target, full=, folder=, watch=)` gives what it came to; `takes` names which of `full` and `folder`
    mean something to it.
    """

    words: str
    ending: str
    write: Writer
    takes: frozenset[str] = frozenset()


FORMATS: dict[str, Format] = {
    "html": Format("the panel with the run inside, one page", ".html", page, frozenset({"full", "folder"})),
    "skn": Format("a bundle, as `worldline pack --share` makes it", ".skn", bundle, frozenset({"full"})),
    "decisions": Format("spans of model and tool calls (OpenTelemetry, OTLP JSON lines)", ".jsonl", decisions),
    "network": Format("model calls as HTTP exchanges (HAR entries, JSON lines)", ".jsonl", network),
}


def export(
    recording: Recording,
    target: Path,
    to: str,
    *,
    full: bool = False,
    folder: bool = False,
    watch: Watch = lambda size: None,
) -> Exported:
    """Write a sealed run as the format `to`. What leaves the machine is redacted by default; `full` keeps everything.

    Raises `UsageError` for a format that there is not, an option that it does not know, or a target that exists, and
    `Ineligible` for a run that is not sealed or does not verify.
    """
    chosen = FORMATS.get(to)
    if chosen is None:
        raise UsageError(f"no format {to!r} to export to; there are {', '.join(FORMATS)}", name=to)
    for option, given in (("full", full), ("folder", folder)):
        if given and option not in chosen.takes:
            raise UsageError(f"--{option} means nothing to {to}", name=to)
    return chosen.write(recording, target, full=full, folder=folder, watch=watch)
