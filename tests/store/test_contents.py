"""Contents: stored once in a run and once in a store, streamed with bounded memory, never taken from a bad pool."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.recorded import action, recorder_in
from worldline.engine.content import Content
from worldline.store import layout
from worldline.store.blobs import BlobStore, stream_blob
from worldline.store.forget import trash
from worldline.store.recording import Recording
from worldline.store.verify import verify

TEXT = "what several runs were told alike " * 2000  # over what a row carries


def run_with(store: Path, result: str, **spec: object) -> Recording:
    recorder, door = recorder_in(store, **spec)
    live = door.begin(action("read", {"of": "it"}))
    live.finish({}, Content.of(result))
    recorder.seal()
    return Recording(recorder.attempt)


def blob_of(recording: Recording) -> Path:
    assert recording.manifest is not None
    [blob] = recording.manifest.blobs
    return layout.blob_path(recording.attempt, blob[3], blob[0])


def test_runs_of_a_store_share_equal_contents_and_stay_whole_alone(tmp_path: Path) -> None:
    first, second = run_with(tmp_path, TEXT), run_with(tmp_path, TEXT)
    assert blob_of(first).samefile(blob_of(second)) and blob_of(first).stat().st_nlink == 3
    other = run_with(tmp_path, TEXT + "but not this")
    assert not blob_of(first).samefile(blob_of(other))
    shutil.rmtree(tmp_path / layout.POOL)
    for recording in (first, second, other):
        assert verify(recording).ok
    again = run_with(tmp_path, TEXT)  # the pool is made anew
    assert verify(again).ok and blob_of(again).stat().st_nlink == 2


def test_deleting_a_run_frees_what_only_it_had(tmp_path: Path) -> None:
    store = tmp_path / "runs"
    first, second, other = run_with(store, TEXT), run_with(store, TEXT), run_with(store, TEXT + "more")
    pooled = {path.name for path in (store / layout.POOL).glob("??/*")}
    assert pooled == {blob_of(first).name, blob_of(other).name}
    for gone in (first, other):
        (store.parent / "trash").mkdir(exist_ok=True)
        gone.run_directory.rename(store.parent / "trash" / gone.run_id)
    assert len(list(trash.delete(store, trash.trashed(store, 0.0)))) == 2
    assert {path.name for path in (store / layout.POOL).glob("??/*")} == {blob_of(second).name}
    assert verify(second).ok


@pytest.mark.parametrize("spoil", [lambda p: p.write_bytes(b"x" * p.stat().st_size), lambda p: p.write_bytes(b"")])
def test_a_spoilt_pool_spoils_no_run(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    first = run_with(tmp_path, TEXT)
    [pooled] = (tmp_path / layout.POOL).glob("??/*")
    os.unlink(pooled)  # a file of its own, not the first run's
    shutil.copy(blob_of(first), pooled)
    spoil(pooled)
    second = run_with(tmp_path, TEXT)
    assert verify(first).ok and verify(second).ok
    assert not blob_of(second).samefile(pooled)


def test_large_content_is_streamed_both_ways(tmp_path: Path) -> None:
    part = os.urandom(1 << 20)
    store = BlobStore(tmp_path, lambda: os.urandom(32), tmp_path / layout.POOL)
    for tier in layout.TIERS:
        tracemalloc.start()
        blob = store.put((part for _ in range(64)), "application/octet-stream", tier)
        size = sum(len(piece) for piece in stream_blob(tmp_path, blob.reference()["$blob"]))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size == blob.size == 64 << 20
        assert peak < 8 << 20, "the content was held in memory"
    assert len({blob.name for blob in store.written.values()}) == 2, "each tier has names of its own"
    assert len(list((tmp_path / layout.POOL).glob("??/*"))) == 1, "restricted content is in no pool"
