"""Every encoding of a secret in every place where an agent can say something: nothing of it in any artefact at all.

The run's directory and what was seen of its progress, the bundle's raw bytes and each of its entries, exports and
proofs, and what every verb prints. The provider's own log counts that each was really said, and the text around stays.
"""

from __future__ import annotations

import base64
import html
import io
import json
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image, PngImagePlugin

from tests.cli.terminal import AGENTS, environment, worldline
from worldline.testing.provider import Ask, Fail, Provider, Reply, Say, ToolCall

TOKEN = 'tok/"0123456789+ab cdé\\f' + "XYZ"  # nobody's; every encoding of it is another
DOCUMENT = json.dumps({"user": "ada", "key": TOKEN, "n": 1})
ESCAPED = json.dumps(TOKEN)[1:-1]
PLANTS = {
    "raw": TOKEN,
    "json": ESCAPED,
    "json twice": json.dumps(ESCAPED)[1:-1],
    "percent": quote(TOKEN, safe=""),
    "percent lower": re.sub("%..", lambda found: found[0].lower(), quote(TOKEN, safe="")),
    "hex": TOKEN.encode().hex(),
    "HEX": TOKEN.encode().hex().upper(),
    "unicode": "".join(f"\\u{ord(char):04x}" for char in TOKEN),
    "html": html.escape(TOKEN),
    "html decimal": "".join(f"&#{ord(char)};" for char in TOKEN),
    "base64": base64.b64encode(TOKEN.encode()).decode(),
    "base64url": base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="),
    "base64 of json": base64.b64encode(DOCUMENT.encode()).decode(),
    "base64 of base64": base64.b64encode(base64.b64encode(TOKEN.encode())).decode(),
    "base64 of hex": base64.b64encode(TOKEN.encode().hex().encode()).decode(),
    "hex of base64": base64.b64encode(TOKEN.encode()).hex(),
    "base64 of a header": base64.b64encode(f"user:{TOKEN}".encode()).decode(),
}
CORES = {base64.b64encode(b"x" * shift + TOKEN.encode())[4:-4] for shift in range(3)}
MARKER = "[secret:SHOP_TOKEN]"
SAID = 3  # models that a plant is said to


def spelled(text: str) -> set[bytes]:
    """A text as it stands in files: itself, and as JSON writes it, once and twice."""
    once = {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return {form.encode() for form in (text, *once, *(json.dumps(each)[1:-1] for each in once))}


FORBIDDEN = set().union(*map(spelled, PLANTS.values()), CORES, spelled(TOKEN))


def hits(name: str, data: bytes) -> list[str]:
    return [
        f"{name}: {form!r}" for form in FORBIDDEN if form in data or form in name.encode("utf-8", "surrogateescape")
    ]


class Model:
    """Echoes; keeps what was really said to the agent."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str]] = []

    def __call__(self, ask: Ask) -> Reply:
        said = ask.last_user
        text = said.partition(": ")[2].removesuffix(" :end")
        self.answers.append((str(ask.model), text))
        if ask.model == "refuses":
            return Fail(400, message=f"not with {text} :end")
        calls = [ToolCall("read_file", {"path": f"/tmp/{text}/x.txt"}, "call_1")] if ask.model == "streams" else []
        return Say(said, calls, chunk=1, pieces="bytes:29" if ask.stream else "whole")


def picture() -> bytes:
    """A PNG with a comment beside its pixels."""
    comment, written = PngImagePlugin.PngInfo(), io.BytesIO()
    comment.add_text("Comment", "C" * 400)
    Image.new("RGB", (64, 64), (200, 30, 30)).save(written, "PNG", pnginfo=comment)
    return written.getvalue()


@pytest.fixture(scope="module", params=[[], ["--spec", "spec.toml"]], ids=["in rows", "in the restricted tier"])
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Provider, Model, Any]:
    """The leaker's run, recorded once, under a file name and with arguments that tell the secret, too."""
    folder, before = tmp_path_factory.mktemp("leaker"), Path.cwd()
    os.chdir(folder)
    try:
        Path(".git").mkdir()
        Path("plants.json").write_text(json.dumps(PLANTS))
        Path("picture.png").write_bytes(picture())
        program = f"leaker-{PLANTS['hex']}-{PLANTS['base64url']}.py"
        Path(program).write_text((AGENTS / "leaker.py").read_text())
        model = Model()
        with Provider(model) as provider:
            env = environment(provider, SHOP_TOKEN=TOKEN, SHOP_HEADER=f"Basic {PLANTS['base64 of a header']}")
            command = [sys.executable, program, *PLANTS.values()]
            task = f"try {PLANTS['base64 of json']}"
            Path("spec.toml").write_text('restrict = ["tool:read_file"]\n')
            options = ["--task", task, *request.param, "--secret-env", "SHOP_TOKEN"]
            ended = worldline("record", *options, "--", *command, env=env)
    finally:
        os.chdir(before)
    assert ended.code == 0, ended.err
    return folder, provider, model, ended


def test_each_was_really_said(recorded: Any) -> None:
    """By the agent to the provider, by the provider to the agent, streamed and whole, and in a refusal."""
    folder, provider, model, _ = recorded
    assert len(provider.requests) == len(model.answers) == SAID * len(PLANTS)
    for number, (name, text) in enumerate(PLANTS.items()):
        requests = provider.requests[SAID * number : SAID * (number + 1)]
        bodies = [request.json for request in requests]
        assert all(request.path.endswith(f"?page={quote(text, safe='')}") for request in requests)
        assert not text.isascii() or all(request.header["x-note"] == text for request in requests)
        assert [body["messages"][0]["content"] for body in bodies] == [f"{name}: {text} :end"] * SAID
        said = json.dumps(bodies[1]["messages"], ensure_ascii=False)
        assert said.count(json.dumps(text, ensure_ascii=False)[1:-1]) >= 4 or "\\" in text
        assert model.answers[SAID * number : SAID * (number + 1)] == [
            ("streams", text),
            ("whole", text),
            ("refuses", text),
        ]
    seen = list(folder.glob("seen-*.json"))
    assert len(seen) >= len(PLANTS) // 2


def test_no_file_of_the_run_holds_any(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _, _, ended = recorded
    monkeypatch.chdir(folder)
    files = [path for path in (*Path(".worldline").rglob("*"), *Path().glob("seen-*.json")) if path.is_file()]
    assert len(files) > len(PLANTS)
    found = [hit for path in files for hit in hits(str(path).replace(str(folder), ""), path.read_bytes())]
    assert found == [] and hits("stderr", ended.err.encode()) == []
    logs = b"".join(path.read_bytes() for path in files if path.suffix == ".jsonl")
    [manifest] = [json.loads(path.read_bytes()) for path in files if path.name == "manifest.json"]
    assert manifest["secrets"]["redactions"] >= logs.count(MARKER.encode()) > 12 * len(PLANTS)
    # Every plant is a marker between what stood around it.
    for name in PLANTS:
        around = rb'"%b: [^"]{0,60}?\[secret:SHOP_TOKEN\][^"]{0,60}? :end"' % name.encode()
        assert len(re.findall(around, logs)) >= 6, name


def test_no_entry_of_the_bundle_and_no_output_holds_any(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _, _, _ = recorded
    monkeypatch.chdir(folder)
    for words in (["-o", "packed.skn", "--with", "decisions,network"], ["-o", "shared.skn", "--share"]):
        done = worldline("pack", "latest", *words)
        assert done.code == 0, done.err
        assert hits("bundle", Path(words[1]).read_bytes()) == []
    entries = {}
    for bundle in ("shared.skn", "packed.skn"):
        with zipfile.ZipFile(bundle) as opened:
            entries |= {name: opened.read(name) for name in opened.namelist()}
        assert [hit for name, data in entries.items() for hit in hits(name, data)] == []
    wanted = {"events.jsonl", "index.json", "manifest.json", "container.json", "decisions.jsonl", "network.jsonl"}
    folders = {name.partition("/")[0] for name in entries}
    assert wanted < folders and {"resources", "thumbs"} < folders
    assert ("restricted" in folders) == ("restricted" in {path.name for path in Path(".worldline").rglob("*/")})
    markers = {name: data.count(MARKER.encode()) for name, data in entries.items()}
    assert markers["events.jsonl"] > 12 * len(PLANTS)
    assert min(markers["decisions.jsonl"], markers["network.jsonl"]) > SAID * len(PLANTS)
    assert entries["decisions.jsonl"].count(b"\n") >= SAID * len(PLANTS)
    for words in (
        ["list"],
        ["list", "--json"],
        ["show", "latest"],
        ["show", "packed.skn", "--json"],
        *(["show", "packed.skn", "--step", str(number)] for number in range(3)),
        ["verify", "packed.skn", "--json"],
        ["replay", "packed.skn", "--json"],
        ["prove", "packed.skn", "--seq", "3", "-o", "proof.json", "--json"],
    ):
        ended = worldline(*words)
        assert ended.code == 0, (words, ended.err)
        assert hits("output", (ended.out + ended.err).encode()) == [], words
    assert hits("proof", Path("proof.json").read_bytes()) == []


def test_the_text_around_is_what_was_said(recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the byte: what the record gives back is what was said, the secret's place taken by its marker."""
    folder, _, _, _ = recorded
    monkeypatch.chdir(folder)
    steps = {
        step["name"].partition(":")[0]: step
        for step in worldline("show", "latest", "--json").json["steps"]
        if step["name"]
    }
    for name, text in PLANTS.items():
        whole = text in (PLANTS["base64 of json"], PLANTS["base64 of a header"])  # all but its ends is the secret's
        for said in (steps[name]["name"], steps[name]["permissions"][0]["facts"]["who"]):
            assert said.startswith(f"{name}: ") and said.endswith(" :end") and said.count(MARKER) == 1, said
            left, right = said.removeprefix(f"{name}: ").removesuffix(" :end").split(MARKER)
            assert text.startswith(left) and text.endswith(right) and (whole or left + right in ("", "=", "=="))
        results = [call["result"] for call in steps[name]["calls"] if call["name"] == "large"]
        assert results and results[0].startswith("before, ") and results[0].endswith(", after")
