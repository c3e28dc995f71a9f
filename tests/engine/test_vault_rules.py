"""Key shapes at the choke point: replaced everywhere, counted by label, replayed by the rules of the recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.engine.recorded import action, answer, decision, recorder_in, written
from worldline.engine.boundary import call
from worldline.engine.cassette import Cassette
from worldline.engine.replay import ReplayBoundary
from worldline.errors import Diverged
from worldline.model.manifest import unseal
from worldline.store.recording import Recording
from worldline.store.secrets import shapes

KEY = "ghp_" + "aB3dE6" * 6  # nobody's
OTHER = "ghp_" + "Zy9xW8" * 6
TOKENS = {"access_token": "f00-" * 8 + "1", "token_type": "bearer", "expires_in": 3600}
ENV = f"GITHUB_TOKEN={KEY}\nDATABASE_URL=postgres://shop:s3cr3t-pass@db/shop\nTOKENIZER=bpe\n"


def run(boundary: Any, key: str) -> list[Any]:
    body = json.dumps({"messages": [{"role": "user", "content": f"use {key}"}], "token_count": 12}).encode()
    live = boundary.begin(decision(body))
    if boundary.mode == "record":
        said = json.dumps({"id": "chatcmpl-B1a2c3d4e5f6g7h8i9j0k1l2", "text": f"It is {key}.", **TOKENS}).encode()
        for at in range(0, len(said), 9):
            live.chunk(said[at : at + 9])
        live.finish({"status": 200, "headers": [], "framing": "chunked", "complete": True})
    return [call(boundary, action("read_env", {"key": key}), lambda: {"file": ENV, "raw": [ENV.encode()]})]


def header(path: Path) -> Any:
    return Recording(path).header.data["secrets"]


def test_they_are_replaced_counted_and_replayed(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path, task=f"try {KEY}")
    run(boundary, KEY)
    path = recorder.seal()
    files = written(tmp_path)
    for value in (KEY, "s3cr3t-pass", TOKENS["access_token"]):
        assert not any(str(value).encode() in content for content in files.values())
    [manifest] = [content for name, content in files.items() if name.name == "manifest.json"]
    # The task, the request, the answer, an argument, and twice the file; the task stands in more than one place.
    counted = unseal(manifest)[0].secrets
    assert counted["shapes"] == {"github-token": 6, "token": 1, "url-password": 2} and counted["redactions"] == 0
    recording = Recording(path)
    kept = Cassette(recording).body(Cassette(recording).exchanges[0])
    assert json.loads(kept) == {
        "id": "chatcmpl-B1a2c3d4e5f6g7h8i9j0k1l2", "text": "It is [secret:github-token].",
        **TOKENS, "access_token": "[secret:token]",
    }  # fmt: skip
    assert header(path)["shapes"] == shapes.VERSION
    for key in (KEY, OTHER, "[secret:github-token]"):
        replay = ReplayBoundary(Recording(path))
        [result] = run(replay, key)
        assert result["file"] == ENV.replace(KEY, "[secret:github-token]").replace(
            "s3cr3t-pass", "[secret:url-password]"
        )
        assert result["raw"] == [result["file"].encode()]
        assert replay.report().equivalent


def test_a_recording_is_replayed_by_the_rules_it_was_made_with(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path, shapes=False)
    run(boundary, KEY)
    path = recorder.seal()
    assert header(path)["shapes"] == 0
    assert any(KEY.encode() in content for content in written(tmp_path).values())
    replay = ReplayBoundary(Recording(path))
    run(replay, KEY)
    assert replay.report().equivalent
    with pytest.raises(Diverged):
        run(ReplayBoundary(Recording(path)), OTHER)


def test_they_never_stop_a_run_and_a_registered_key_keeps_its_label(tmp_path: Path) -> None:
    recorder, boundary = recorder_in(tmp_path, secrets={"MINE": OTHER}, policy="stop")
    call(boundary, action("t", {"a": KEY}), lambda: 1)
    assert recorder.stopped is None and recorder.vault.shapes == {"github-token": 1}
    recorder.seal()
    second, boundary = recorder_in(tmp_path / "second", secrets={"MINE": OTHER})
    call(boundary, action("t", {"a": OTHER, "b": KEY}), lambda: 1)
    recording = Recording(second.seal())
    inputs = Cassette(recording).inputs(Cassette(recording).exchanges[0])
    assert inputs == {"a": "[secret:MINE]", "b": "[secret:github-token]"}
    assert (second.vault.redactions, second.vault.shapes) == (1, {"github-token": 1})


def test_ordinary_bodies_and_values_are_the_same_bytes(tmp_path: Path) -> None:
    value = {"token_count": 12, "tokenizer": "bpe", "code": "client(api_key=self._key)", "ids": ["call_" + "a1" * 12]}
    recorder, boundary = recorder_in(tmp_path)
    body = b'{ "token_count":12,"tokenizer" : "bpe","n":1.50 }'
    exchange = answer(boundary, decision(body), [body])
    assert call(boundary, action("t", value), lambda: value) == value
    recording = Recording(recorder.seal())
    cassette = Cassette(recording)
    assert cassette.body(cassette.by_call[exchange]) == body == cassette.request(cassette.by_call[exchange])
    assert cassette.inputs(cassette.exchanges[1]) == value
    result = recording.encoded(cassette.exchanges[1].data["result"])[0]
    assert bytes(result) == msgspec.json.encode(value) and not recorder.vault.shapes
