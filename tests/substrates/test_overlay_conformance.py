"""Overlay keeps the promises of every substrate, as root and in a user namespace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from worldline.engine.substrates.overlay import Overlay
from worldline.testing.subject import Subject
from worldline.testing.substrates import CHECKS


def as_root(store: Path) -> Overlay:
    return Overlay(store, own_users=False)


def as_user(store: Path) -> Overlay:
    return Overlay(store, own_users=True)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("way", ["as_root", "as_user"])
def test_it_keeps_the_promise(way: str, check: Callable[[Subject], None], tmp_path: Path) -> None:
    check(Subject(f"{__name__}:{way}", tmp_path))
