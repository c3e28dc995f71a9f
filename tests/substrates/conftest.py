"""What a substrate leaves behind is looked for where tests of other workers come and go."""

from __future__ import annotations

import pytest

from tests.substrates.surroundings import world
from worldline.testing import substrates


@pytest.fixture(autouse=True)
def others_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of every substrate see no mount that another worker's test makes meanwhile."""
    monkeypatch.setattr(substrates, "world", world)
