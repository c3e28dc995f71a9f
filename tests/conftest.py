"""What every test stands on: its own working directory, untouched stores, and words for what may be missing."""

from __future__ import annotations

import compileall
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import worldline
from tests.soak import LONG, Soak, share

ROOT = Path(__file__).resolve().parent.parent
# The same examples every time, and no test that fails because its machine is slow.
settings.register_profile("worldline", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("worldline")

# Whoever starts the tests in the background, or with nohup, hands signals on as ignored; the programs under test, which
# inherit that, are to hear them.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

MEMORY = Path("/dev/shm")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
IN_MEMORY = f"worldline-{WORKER}-"  # how the folders of this worker's tests begin there
SHARE = pytest.StashKey[Soak]()
STORES = (Path.home() / ".worldline", ROOT / ".worldline")


def require(what: str, present: object, reason: str) -> None:
    """Skip the running test with `reason` unless `present` is true.

    `what` is one word for the thing that is needed (`git`, `network`, `shared-data`). Where the environment variable
    WORLDLINE_REQUIRE names it (a comma-separated list, or `all`), a missing thing fails the test instead: a machine
    that promises to have it cannot skip its way to green.
    """
    if present:
        return
    promised = {word.strip() for word in os.environ.get("WORLDLINE_REQUIRE", "").split(",")}
    if promised & {what, "all"}:
        pytest.fail(f"{what} is required here (WORLDLINE_REQUIRE): {reason}", pytrace=False)
    pytest.skip(f"{what}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    """Compile the package once, before the first worker starts.

    The tests start it some thousand times in processes that may write no bytecode, and of a fresh checkout, or where
    PYTHONDONTWRITEBYTECODE is set, each of them would compile all that it loads.
    """
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(worldline.__file__).parent, quiet=2)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make soak` runs the tests that have a long form, and no others."""
    lasting = [item for item in items if "soak" in getattr(item, "fixturenames", ())]
    config.stash[SHARE] = share(len(lasting))
    if LONG:
        config.hook.pytest_deselected(items=[item for item in items if item not in lasting])
        items[:] = lasting


@pytest.fixture(scope="session")
def soak(request: pytest.FixtureRequest) -> Soak:
    """How far a test goes that could go on for ever (see `tests/soak.py`)."""
    return request.config.stash[SHARE]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real trajectory files of many tools, in `../shared/data` beside the checkout: read only, used in place."""
    place = ROOT.parent / "shared" / "data"
    require("shared-data", place.is_dir(), "no ../shared/data beside the checkout")
    return place


@pytest.fixture(scope="session", autouse=True)
def stores_stay_untouched() -> Iterator[None]:
    """No test writes into the stores of whoever runs it."""
    before = contents_of_stores()
    yield
    changed = sorted(str(path) for path, _ in before.items() ^ contents_of_stores().items())
    if changed:
        pytest.fail(
            f"a test (or a run beside the tests) wrote into a real store: {', '.join(changed[:5])}", pytrace=False
        )


@pytest.fixture(autouse=True)
def own_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs in a directory of its own, so the default store is there, and joins no run from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("WORLDLINE_") and name != "WORLDLINE_REQUIRE"]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder, as a store of certificates."""
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(autouse=True)
def trusts_nobody(no_certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No TLS of the world outside: every client of an SDK would read all its certificates first, 0.06 s each time."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(no_certificates))


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """An empty folder in memory where there is one: for tests that record hundreds of times."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(dir=MEMORY, prefix=IN_MEMORY))
    yield folder
    shutil.rmtree(folder)


def contents_of_stores() -> dict[Path, tuple[int, int]]:
    """Size and time of change (ns) of every file in the stores that are not the tests'."""
    files = (path for store in STORES if store.is_dir() for path in store.rglob("*") if path.is_file())
    return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in files}
