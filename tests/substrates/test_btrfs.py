"""btrfs keeps the promises of every substrate, on a real file system in a loop device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.substrates.loops import as_subvolume, btrfs
from worldline.engine.substrates import subvolumes
from worldline.engine.substrates.btrfs import Btrfs
from worldline.engine.substrates.substrate import Policy
from worldline.errors import StaleBase, Unavailable, Unsupported
from worldline.testing.subject import Subject
from worldline.testing.substrates import CHECKS


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with btrfs(tmp_path_factory.mktemp("btrfs")) as place:
        yield place


@pytest.fixture
def place(disk: Path, request: pytest.FixtureRequest) -> Path:
    folder = disk / f"{abs(hash(request.node.nodeid)):x}"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_promise(check: Callable[[Subject], None], place: Path) -> None:
    check(Subject("worldline.engine.substrates.btrfs:Btrfs", place, prepare=as_subvolume))


def test_what_cannot_be_kept_is_refused_by_name(place: Path, tmp_path: Path) -> None:
    plain, volume = place / "plain", place / "volume"
    plain.mkdir()
    subvolumes.create(volume)
    store = place / "runs"
    with pytest.raises(Unavailable, match="no subvolume"):
        Btrfs(store).open(plain, Policy(store=store))
    with pytest.raises(Unavailable, match="put it beside"):
        Btrfs(volume / "runs").open(volume, Policy(store=volume / "runs"))
    with pytest.raises(Unavailable, match="does not lie on btrfs"):
        Btrfs(tmp_path / "runs").open(volume, Policy(store=tmp_path / "runs"))


def test_a_subvolume_in_the_workspace_is_never_dropped(place: Path) -> None:
    store, volume = place / "runs", place / "volume"
    subvolumes.create(volume)
    with_more = Btrfs(store)
    env = with_more.open(volume, Policy(store=store))
    ref = env.snapshot(1)
    subvolumes.create(volume / "more")
    (volume / "more" / "file").write_text("whose?")
    with pytest.raises(Unsupported, match="another subvolume"):
        env.restore(ref)
    assert (volume / "more" / "file").read_text() == "whose?"
    assert sorted(path.name for path in place.iterdir()) == ["runs", "volume"]
    env.close()


def test_gc_keeps_what_is_pinned(place: Path) -> None:
    store, volume = place / "runs", place / "volume"
    subvolumes.create(volume)
    kept = Btrfs(store)
    env = kept.open(volume, Policy(store=store))
    first, second, third = (env.snapshot(number) for number in range(3))
    kept.pin(first)
    kept.gc([third])
    for ref in (first, third):
        kept.export(ref)
    with pytest.raises(StaleBase):
        kept.export(second)
    env.close()
