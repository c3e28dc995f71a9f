"""Make the golden recordings of one version of the format: `python -m tests.golden.make v1`.

It records with the worldline that is importable, so an older version's are made by an older checkout. A folder that
exists is never made again: what a frozen version wrote is only read from then on.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from tests.golden import agents, spoil

HERE = Path(__file__).parent
PID = 1000  # every header holds the process's; which one it was is nobody's business
SIGNER = "golden@example.org"


def record(store: Path, name: str, **how: Any) -> Path:
    """Record one of the agents. Returns the run's directory."""
    import worldline as wl
    from worldline.errors import SecretFound
    from worldline.testing.provider import Provider

    with Provider(agents.model) as provider:
        os.environ |= {"OPENAI_BASE_URL": provider.openai_url, "ANTHROPIC_BASE_URL": provider.anthropic_url}
        try:
            with wl.record(store, task=f"golden {name}", agent={"name": "golden", "version": "1"}, **how):
                agents.AGENTS[name]()
        except SecretFound:
            pass
        finally:
            del os.environ["OPENAI_BASE_URL"], os.environ["ANTHROPIC_BASE_URL"]
    [run] = store.glob("run_*")
    return run


def complete(store: Path) -> Path:
    """Streamed answers, tools, odd values, failures, samples, a permission, an outcome."""
    return record(store, "conversation")


def short(store: Path) -> Path:
    """What is damaged in every way: a few rows and two contents."""
    return record(store, "short")


def blobs(store: Path) -> Path:
    """Contents in files of their own, and a log of several chunks."""
    with small_chunks():
        return record(store, "large")


def blocks(store: Path) -> Path:
    """A log of more than one block in its bundle."""
    return record(store, "wordy")


def lanes(store: Path) -> Path:
    """Three threads that ask at the same time."""
    return record(store, "lanes")


def secrets(store: Path) -> Path:
    """A registered secret, replaced."""
    return record(store, "secretive", secrets={"GOLDEN_TOKEN": agents.SECRET})


def refs(store: Path) -> Path:
    """References and sizes, no contents."""
    return record(store, "conversation", capture="refs")


def sanitized(store: Path) -> Path:
    """The policy `stop`: sealed as partial at the first secret."""
    return record(store, "secretive", secrets={"GOLDEN_TOKEN": agents.SECRET}, policy="stop")


def partial(store: Path) -> Path:
    """Interrupted by its user on the way."""
    with mock.patch.object(agents, "refund", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
        record(store, "conversation")
    [run] = store.glob("run_*")
    return run


def renamed(store: Path) -> Path:
    """Published where the file system has no hard links."""
    with mock.patch("os.link", side_effect=PermissionError(1, "Operation not permitted")):
        return record(store, "lanes")


def torn(store: Path) -> Path:
    """Its writer died within a line; reconciled."""
    recorder = begun(store)
    recorder.close()
    tail = recorder.attempt / "tail.jsonl"
    with tail.open("ab") as file:
        file.write(tail.read_bytes()[-200:-90])
        file.write(bytes(24))
    return settle(recorder.run_directory)


def ended_twice(store: Path) -> Path:
    """Its writer died between the end of the log and the commit point; reconciled, so it has two rows `meta/end`."""
    recorder = begun(store)
    with mock.patch("worldline.engine.recorder.publish", side_effect=RuntimeError), suppress(RuntimeError):
        recorder.seal()
    recorder.close()
    return settle(recorder.run_directory)


def two_attempts(store: Path) -> Path:
    """A run whose first attempt died and whose second one published."""
    first = begun(store)
    first.close()
    second = begun(store, session=first.session, run=first.run_directory, continues=continued(first))
    second.seal()
    return settle(first.run_directory)


def unsealed(store: Path) -> Path:
    """Its writer died; nobody reconciled it."""
    recorder = begun(store)
    recorder.close()
    return Path(recorder.run_directory)


def signed(store: Path) -> Path:
    """Signed with a key that nobody has any more; who may sign stands in `allowed_signers` beside the run."""
    from worldline.store import signature
    from worldline.store.recording import Recording

    run = record(store, "short")
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", SIGNER, "-f", key], check=True)
        signature.sign(Recording(run), key)
        public = " ".join(Path(folder, "key.pub").read_text().split()[:2])
    (run / "allowed_signers").write_text(f'{SIGNER} namespaces="worldline" {public}\n')
    return run


def begun(store: Path, **how: Any) -> Any:
    """A recorder with a tool call that ended and one that did not, on the disk."""
    from worldline.engine import recorder as engine  # in every version the spec is to be had here
    from worldline.engine.boundary import Call, RecordBoundary
    from worldline.engine.content import Content

    agent = {"name": "golden", "version": "1"}
    recorder = engine.Recorder(engine.Spec(store=store, task="golden crash", agent=agent, **how))
    boundary = RecordBoundary(recorder)
    call = Call(kind="action", name="pay", inputs=Content.of({"n": 1}), effect="side_effecting")
    boundary.begin(call).finish({}, Content.of({"paid": 1}))
    boundary.begin(call)
    return recorder


def continued(first: Any) -> dict[str, Any]:
    """What the header of a next attempt says of the one before."""
    return {"run": first.run, "attempt": first.attempt_id, "h": first.header_hash}


def settle(run: Path) -> Path:
    """Reconcile a run."""
    from worldline.engine.account import account
    from worldline.store.reconcile import reconcile

    reconcile(run, account)
    return run


@contextmanager
def small_chunks() -> Iterator[None]:
    """Logs that go on in the next file after 1500 bytes."""
    from worldline.store.log import LogWriter

    with mock.patch.object(LogWriter.__init__, "__defaults__", (1500,)):
        yield


Recipe = Callable[[Path], Path]
RECIPES: dict[str, Recipe] = {
    "short": short,
    "complete": complete,
    "blobs": blobs,
    "blocks": blocks,
    "lanes": lanes,
    "secrets": secrets,
    "refs": refs,
    "sanitized": sanitized,
    "partial": partial,
    "renamed": renamed,
    "torn": torn,
    "ended-twice": ended_twice,
    "two-attempts": two_attempts,
    "signed": signed,
    "unsealed": unsealed,
}
PACKED = ("short", "complete", "blobs", "blocks", "lanes", "secrets", "refs", "sanitized", "partial", "torn", "signed")


def make(place: Path) -> None:
    """Make every recording of the version that is importable, its bundles and its proofs."""
    from worldline.store.bundle.pack import pack
    from worldline.store.proof import prove_prefix, prove_row
    from worldline.store.recording import Recording

    place.mkdir()
    for name, recipe in RECIPES.items():
        with tempfile.TemporaryDirectory() as folder:
            run = recipe(Path(folder) / "runs")
            if name != "blocks":  # large, and no different as a directory
                shutil.copytree(run, place / name / run.name)
            recording = Recording(run)
            if name in PACKED:
                pack(recording, place / f"{name}.skn")
            if name == "signed":
                shutil.copy(next(run.glob("*.sig")), place / "signed.skn.sig")
            if name == "complete":
                (place / "row.proof").write_bytes(prove_row(recording, 5))
                (place / "prefix.proof").write_bytes(prove_prefix(recording, 6))


def make_1(place: Path) -> None:
    """Make what `worldline/0` had not."""
    from tests.golden import recipes_1

    for name, recipe in recipes_1.RECIPES.items():
        with tempfile.TemporaryDirectory() as folder:
            run = recipe(Path(folder) / "runs")
            shutil.copytree(run, place / name / run.name)
            recipes_1.bundles(name, run, place)


KEPT = {
    "damaged": (
        *(
            "row_edited",
            "row_deleted",
            "log_cut",
            "manifest_edited",
            "result_edited",
            "published_deleted",
            "file_added",
        ),
        *("blob_edited", "flip-log", "cut-1", "prefixed", "resource-replaced", "result-replaced", "entry-added"),
    ),
    "hostile": (
        *("foreign-zip", "nested-zip", "zip-slip", "name-twice", "overlap", "symlink", "fake-end", "bomb", "million"),
        *("wrong-types", "huge-size", "other-format"),
    ),
}
"""One of each kind stands in the repository; the tests make all of them."""


def make_spoilt(place: Path) -> None:
    """Damage what was made, in the ways that are kept."""
    for folder, names in KEPT.items():
        (place / folder).mkdir()
        [run] = (place / "short").iterdir()
        for change in spoil.DIRECTORIES:
            if change.__name__ in names:
                copied = shutil.copytree(run, place / folder / change.__name__ / run.name)
                change(spoil.attempt_of(copied))
        bundle = spoil.Bundle(place / "short.skn")
        for name, changed in {**spoil.BUNDLES, **spoil.HOSTILE}.items():
            if name in names:
                (place / folder / f"{name}.skn").write_bytes(changed(bundle))


def main() -> None:
    """Make the version that is named on the command line, in surroundings that say nothing of this machine."""
    [version] = sys.argv[1:]
    path = os.environ["PATH"]
    os.environ.clear()
    os.environ |= {"PATH": path, "LANG": "C.UTF-8", "TZ": "UTC"}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with mock.patch("os.getpid", return_value=PID):
        make(HERE / version)
        if version != "v0":
            make_1(HERE / version)
        make_spoilt(HERE / version)


if __name__ == "__main__":
    main()
