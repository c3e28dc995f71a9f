"""Old records open, for ever; every damage is seen; and two implementations that share no line agree on all of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.cli import terminal
from tests.conftest import ROOT, require
from tests.golden import agents, make, spoil, spoil_1
from worldline.engine.cassette import Cassette
from worldline.engine.replay import placeholder
from worldline.errors import NewerFormat, WorldlineError
from worldline.model.manifest import FORMAT, READABLE
from worldline.store import layout
from worldline.store.bundle.packed import open_recording
from worldline.store.proof import check_proof
from worldline.store.recording import Recording
from worldline.store.verify import verify

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.glob("v*"))
QUESTIONS = ("structure", "evidence", "publication", "availability")
REFUSED = {**dict.fromkeys(QUESTIONS, "refused"), "ok": False}
UNSEALED = {"unsealed"}


def good(version: str) -> dict[str, Path]:
    """The recordings of a version: attempt directories and bundles, by a name that says which."""
    folder = HERE / version
    found = {f"{path.stem}.skn": path for path in folder.glob("*.skn")}
    for attempt in folder.glob("*/run_*/trajectory/attempts/*"):
        recipe = attempt.relative_to(folder).parts[0]
        found[f"{recipe}/{attempt.name}"] = attempt
    return dict(sorted(found.items()))


def kept(version: str) -> dict[str, Path]:
    """The damaged and hostile ones that stand in the repository."""
    found = {}
    for folder in make.KEPT:
        for path in sorted((HERE / version / folder).iterdir()):
            place = path if path.is_file() else spoil.attempt_of(next(path.iterdir()))
            found[f"{folder}/{path.name}"] = place
    return found


def spoilt(version: str, place: Path) -> dict[str, Path]:
    """Every damage and malice, made of the version's `short`."""
    [run] = (HERE / version / "short").iterdir()
    found = {}
    for change in spoil.DIRECTORIES:
        attempt = spoil.attempt_of(shutil.copytree(run, place / change.__name__ / run.name))
        change(attempt)
        found[change.__name__] = attempt
    bundle = spoil.Bundle(HERE / version / "short.skn")
    for name, changed in {**spoil.BUNDLES, **spoil.HOSTILE}.items():
        found[name] = place / f"{name}.skn"
        found[name].write_bytes(changed(bundle))
    return found if version == "v0" else {**found, **spoilt_1(version, place)}


def spoilt_1(version: str, place: Path) -> dict[str, Path]:
    """The same of what `worldline/0` had not."""
    found = {}
    for source, changes in spoil_1.DIRECTORIES.items():
        for change in changes:
            run = only(version, source)
            found[change.__name__] = spoil.attempt_of(shutil.copytree(run, place / change.__name__ / run.name))
            change(found[change.__name__])
    for source, made in spoil_1.BUNDLES.items():
        for name, changed in made.items():
            found[name] = place / f"{name}.skn"
            found[name].write_bytes(changed(spoil.Bundle(HERE / version / f"{source}.skn")))
    return found


class Set:
    """All recordings of a version, good and bad, and what Python says of each."""

    def __init__(self, version: str, place: Path) -> None:
        self.version = version
        self.good, self.kept, self.spoilt = good(version), kept(version), spoilt(version, place)
        self.all = {**self.good, **self.kept, **self.spoilt}
        self.said = {name: judged(path) for name, path in self.all.items()}


def judged(path: Path) -> dict[str, Any]:
    """The verdicts; a recording that is refused has none."""
    try:
        verification = verify(open_recording(path))
    except WorldlineError:
        return REFUSED
    return {**{question: verification.verdicts[question] for question in QUESTIONS}, "ok": verification.ok}


@pytest.fixture(scope="module", params=VERSIONS)
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Set:
    return Set(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def only(version: str, recipe: str) -> Path:
    [run] = (HERE / version / recipe).glob("run_*")
    return run


# ------------------------------------------------------------------------------------------------------------ verdicts


def test_every_good_one_is_good(golden: Set) -> None:
    bad = {name: golden.said[name] for name in golden.good if not golden.said[name]["ok"]}
    assert {name.split("/")[0] for name in bad} == UNSEALED
    assert all(said["structure"] == said["evidence"] == said["availability"] == "ok" for said in bad.values())


def test_every_damage_is_seen_and_what_cannot_be_seen_is_known(golden: Set) -> None:
    unseen = {name for name in (*golden.kept, *golden.spoilt) if golden.said[name]["ok"]}
    assert unseen == set(spoil.UNSEEN)


def test_what_is_kept_is_what_would_be_made_today(golden: Set) -> None:
    for name in golden.kept:
        today = Path(name).name.removesuffix(".skn")
        assert golden.said[name] == golden.said[today], name


def test_a_second_implementation_says_the_same_of_all(golden: Set) -> None:
    node = shutil.which("node")
    require("node", node, "node is not installed")
    program = ROOT / "docs" / "format" / "verify.mjs"
    assert len(program.read_text(encoding="utf-8").splitlines()) <= 150
    ran = subprocess.run([str(node), program, *golden.all.values()], capture_output=True, text=True, check=False)
    assert ran.stderr == "" and ran.returncode == 1
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [answer["path"] for answer in answers] == [str(path) for path in golden.all.values()]
    theirs = dict(zip(golden.all, answers, strict=True))
    differing = {
        name: (said, theirs[name])
        for name, said in golden.said.items()
        if {key: theirs[name][key] for key in said} != said
    }
    assert differing == {}


def test_a_damaged_one_is_refused_by_replay_and_still_read(golden: Set) -> None:
    for name, path in golden.spoilt.items():
        if name in spoil.UNSEEN or golden.said[name]["publication"] == "unsealed":
            continue
        try:
            recording = open_recording(path)
            rows = list(recording.events())
            report = wl.Run(recording).replay(agents.short)
        except WorldlineError:
            continue
        assert report.verdict == "ineligible" and report.reasons, name
        assert rows or name in ("log_emptied", "log-bomb"), name


def test_deleting_what_is_derived_changes_no_verdict(golden: Set, tmp_path: Path) -> None:
    for name, path in golden.good.items():
        if path.is_file():
            continue
        run = shutil.copytree(path.parents[2], tmp_path / name.split("/")[0] / path.parents[2].name, dirs_exist_ok=True)
        attempt = run / layout.ATTEMPTS / path.name
        (attempt / layout.CHUNKS).mkdir(exist_ok=True)  # a checkout has no empty folder
        for derived in (layout.LOCK, layout.OPEN, layout.PROGRESS):
            (attempt / derived).unlink(missing_ok=True)
        assert judged(attempt) == golden.said[name], name


# ------------------------------------------------------------------------------------------------------------- reading


def test_its_header_and_manifest_read_as_the_newest_format_says(version: str) -> None:
    written = {"v0": "worldline/0", "v1": "worldline/1"}[version]
    for name, path in good(version).items():
        recording = open_recording(path)
        header, manifest = recording.header.data, recording.manifest
        assert header["format"] == written and written in READABLE
        assert {"continues", "origin", "secrets"} <= header.keys() and "shapes" in header["secrets"]
        if manifest is None:
            assert name.split("/")[0] in UNSEALED
            continue
        assert manifest.format == written
        assert manifest.genesis == manifest.header
        assert "shapes" in manifest.secrets
        lost = bool(manifest.coverage["losses"] or manifest.derived_from)
        assert manifest.capabilities == ([] if manifest.capture == "refs" else ["L0"] if lost else ["L0", "L1"])
        assert recording.manifest_line is not None and recording.manifest_line.count(written.encode()) >= 1


def test_a_format_that_nobody_knows_is_named(golden: Set) -> None:
    with pytest.raises(NewerFormat, match="worldline/9") as caught:
        _ = open_recording(golden.spoilt["other_format"]).header
    assert FORMAT in str(caught.value)


def test_contexts_are_rebuilt_from_every_one(version: str) -> None:
    reports = {name: wl.Run(open_recording(path)).replay() for name, path in good(version).items()}
    unable = {name.split("/")[0].removesuffix(".skn") for name, report in reports.items() if not report.equivalent}
    assert unable == {"refs"} | ({"expired", "shared"} if version != "v0" else set())
    assert all(report.equivalent or report.verdict == "ineligible" for report in reports.values())
    assert wl.Run(Recording(only(version, "complete"))).replay().contexts == 2


@pytest.mark.parametrize("recipe, agent", [("complete", "conversation"), ("lanes", "lanes"), ("blobs", "large")])
def test_agents_of_today_replay_against_it(version: str, recipe: str, agent: str) -> None:
    for path in (only(version, recipe), HERE / version / f"{recipe}.skn"):
        report = wl.open(path).replay(agents.AGENTS[agent])
        assert report.verdict == "equivalent", report.first_divergence


def test_a_replay_stands_in_for_the_secret_that_was_left_out(version: str) -> None:
    run = wl.open(only(version, "secrets"))
    # The value itself, or a placeholder for whoever does not have it.
    for value, secrets in ((agents.SECRET, {"GOLDEN_TOKEN": agents.SECRET}), (placeholder("GOLDEN_TOKEN"), {})):
        report = run.replay(partial(secretive, value), secrets=secrets)
        assert report.verdict == "equivalent", report.first_divergence
    stored = b"".join(path.read_bytes() for path in run.path.parent.rglob("*") if path.is_file())
    assert agents.SECRET.encode() not in stored and b"[secret:GOLDEN_TOKEN]" in stored


def secretive(secret: str) -> None:
    agents.leak("before")
    agents.ask("openai", [{"role": "user", "content": f"say it: {secret}"}], stream=True)


def test_every_value_comes_back(version: str) -> None:
    cassette = Cassette(Recording(only(version, "complete")))
    odd = next(exchange for exchange in cassette.exchanges if exchange.name == "odd")
    assert repr(cassette.recording.value(odd.data["result"])) == repr(agents.odd())
    deep = Cassette(Recording(only(version, "short")))
    nested = next(exchange for exchange in deep.exchanges if exchange.name == "nested")
    assert deep.recording.value(nested.data["result"]) == agents.nested(120)


def test_the_command_line_opens_it(version: str) -> None:
    for path in (only(version, "complete"), HERE / version / "complete.skn"):
        shown = worldline("show", path, "--json")
        assert [step["name"] for step in shown["steps"]] == ["count"] and shown["problems"] == []
        assert worldline("verify", path, "--json")["verdicts"]["structure"] == "ok"
        assert worldline("replay", path, "--json")["verdict"] == "equivalent"
    listed = worldline("list", HERE / version / "complete", "--json")
    assert json.dumps(listed).count(only(version, "complete").name) >= 1


def worldline(*words: object) -> Any:
    ran = terminal.worldline(*map(str, words))
    assert ran.code == 0, ran.err
    return ran.json


def test_its_proofs_and_its_signature_hold(version: str) -> None:
    run = only(version, "complete")
    fingerprint = Recording(run).fingerprint
    for name, what in (("row.proof", "seq"), ("prefix.proof", "prefix")):
        proven = check_proof((HERE / version / name).read_bytes(), fingerprint)
        assert proven.trusted and getattr(proven, what) is not None
    require("ssh-keygen", shutil.which("ssh-keygen"), "OpenSSH is not installed")
    signers = only(version, "signed") / "allowed_signers"
    for path in (only(version, "signed"), HERE / version / "signed.skn"):
        said = verify(open_recording(path), signers=signers)
        assert (said.verdicts["authenticity"], said.facts["signer"]) == ("signed", make.SIGNER)


def test_what_is_not_there_is_said(version: str) -> None:
    if version == "v0":
        return
    folder = HERE / version
    states = {
        name: verify(open_recording(folder / f"{name}.skn")).verdicts["availability"] for name in ("shared", "expired")
    }
    assert states == {"shared": "withheld", "expired": "expired"}
    source, derived = Recording(only(version, "restricted")), open_recording(folder / "derived.skn")
    assert derived.manifest is not None and derived.manifest.derived_from is not None
    said = derived.manifest.derived_from
    assert (said["seal"], said["run"]) == (source.fingerprint, source.run_id) and sum(said["removed"].values()) > 0
    assert verify(derived).verdicts["publication"] == "derived"


# --------------------------------------------------------------------------------------------------------------- files


def files() -> Iterator[Path]:
    for version in VERSIONS:
        yield from (path for path in (HERE / version).rglob("*") if path.is_file())


def test_they_are_small_and_say_nothing_of_who_made_them() -> None:
    assert sum(path.stat().st_size for path in files()) < 1_500_000
    for version in VERSIONS:
        for path in good(version).values():
            header = open_recording(path).header
            assert header.data["pid"] == make.PID
            assert header.data["environment"].get("variables", {}).keys() <= {"LANG", "TZ", "GOLDEN_TOKEN"}
            assert not any(str(Path.home()).encode() in event.raw for event in open_recording(path).events())
