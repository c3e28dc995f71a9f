"""What environments have in common that are a folder: commands run in it as it stands, and it draws nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from worldline.engine.substrates.states import AWAKE, Life, State
from worldline.engine.substrates.substrate import Launch


class FolderEnv:
    """What is the same for none, files, git and btrfs; each keeps and restores in its own way."""

    def __init__(self, root: Path, life: Life) -> None:
        self.root = root
        self.life = life
        self._last: str | None = None  # the snapshot that the next one stands on

    @property
    def state(self) -> State:
        """What may be done with it now."""
        return self.life.state

    def quiesce(self) -> AbstractContextManager[None]:
        """Hold it still: nothing of ours runs in it."""
        return self.life.still()

    def exec(self, action: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Run an argv in the folder to its end."""
        self.life.expect(*AWAKE)
        return subprocess.run(list(action), cwd=self.root, capture_output=True, check=False)

    def launch(self, argv: Sequence[str]) -> Launch:
        """A command runs in the folder as it stands."""
        return Launch(argv=list(argv), cwd=self.root)

    def reseed(self, seed: str) -> Sequence[str]:
        """A folder draws nothing by chance."""
        self.life.to(State.RESEEDED)
        return ()

    def open_gate(self) -> None:
        """Go live."""
        self.life.to(State.LIVE)

    def close(self) -> None:
        """Let go of it; it is the user's."""
        self.life.to(State.CLOSED)
