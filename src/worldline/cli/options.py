"""Options that several verbs share, and how a verb finds its run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from worldline.errors import RecordingNotFound
from worldline.store.catalog import default_store, find, runs
from worldline.store.layout import DEFAULT_STORE
from worldline.store.recording import Recording

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else, to stdout."
)
store_option = click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="WORLDLINE_STORE",
    help="Where runs are looked up by id.  [default: .worldline/runs of this folder or one above]",
)
policy_option = click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rules about tools with effects: TOML, or FILE.cedar.  [default: worldline.toml, where it has some]",
)
mask_option = click.option(
    "--mask",
    "mask",
    multiple=True,
    metavar="MASK",
    help="Leave a value out of the comparison: '$.path', 'tool:NAME $.path', either with =~REGEX. May be repeated; "
    "those of the record and of worldline.toml are in force, too.",
)
run_argument = click.argument("run")
command_argument = click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- CMD...")


def recording_of(run: str, store: Path | None) -> Recording:
    """The recording that a RUN argument names: a path, an id or a part of it, `latest`."""
    return find(run, default_store(store))


def store_of(directory: Path | None) -> Path:
    """The store that a DIR argument names: itself, or the one in that folder; without it the nearest upwards."""
    if directory is not None and not directory.is_dir():
        raise RecordingNotFound(f"no folder {directory}", path=str(directory))
    if directory is not None and not runs(directory) and (directory / DEFAULT_STORE).is_dir():
        return directory / DEFAULT_STORE
    return default_store(directory)
