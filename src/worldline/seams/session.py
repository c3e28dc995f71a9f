"""A run that is open: recorder or replayer, proxy and door together, for a command or for this process.

`RecordingSession` records; `ReplaySession` serves a recording. Both give the environment for child processes. What one
of them alone needs is loaded where it is used: every recorded command waits for this file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worldline.engine import clock
from worldline.engine.boundary import RecordBoundary
from worldline.engine.recorder import Recorder
from worldline.engine.spec import Spec
from worldline.errors import WorldlineError
from worldline.seams.door import Door
from worldline.seams.environment import (
    NOWHERE,
    PROVIDERS,
    absent_keys,
    child_environment,
    differences_of_environment,
    no_way_out,
    recorded_environment,
    upstreams,
)
from worldline.seams.wire.proxy import Proxy
from worldline.store.recording import Recording
from worldline.store.rendezvous import Rendezvous, announce, withdraw

if TYPE_CHECKING:
    from worldline.engine.calibrating import Calibration
    from worldline.engine.fail_open import Losses
    from worldline.engine.fork import ForkBoundary
    from worldline.engine.replay import ReplayReport
    from worldline.model.masks import Mask


class RecordingSession:
    """Opens an attempt with its proxy. `opens` gives the door of its recorder where it is a branch.

    Raises what opening a recorder, its door or a port raises.
    """

    def __init__(
        self,
        spec: Spec,
        environment: Mapping[str, str],
        port: int = 0,
        opens: Callable[[Recorder], RecordBoundary | ForkBoundary] | None = None,
    ) -> None:
        self.recorder = Recorder(spec, lambda vault: recorded_environment(environment, vault.holds_secret))
        answers = clock.token()
        try:
            self.boundary = (opens or _door_of(spec))(self.recorder)
            self.proxy = Proxy(
                self.boundary,
                upstreams(environment),
                self.recorder.vault.holds_secret,
                Door(self.boundary, self.info, answers),
                port=port,
                http_proxy=_http_proxy(environment),
            )
        except BaseException:
            self.recorder.discard()
            raise
        try:
            if spec.workspace is not None and isinstance(self.boundary, RecordBoundary):
                from worldline.engine.workspace import Workspace

                self.boundary.workspace = Workspace.opened(self.recorder, spec.workspace)
        except BaseException:
            self.proxy.close(drain_seconds=0)
            self.recorder.discard()
            raise
        self._announce(answers)
        self._environment = environment

    @property
    def lost(self) -> Losses | None:
        """What was not recorded since the recording failed open; None of one that fails closed, or lost nothing."""
        return self._losses if self._losses is not None and self._losses.why is not None else None

    @property
    def _losses(self) -> Losses | None:
        return getattr(self.boundary, "losses", None)

    def info(self) -> dict[str, Any]:
        """What a joining process is told."""
        recorder = self.recorder
        return {
            "mode": self.boundary.mode,
            "run": recorder.run,
            "attempt": recorder.attempt_id,
            "session": recorder.session,
            "secrets": recorder.vault.labels,
            "crossed": dict(self.boundary.crossed),
            "path": str(recorder.run_directory.absolute()),
        }

    def environment(self) -> dict[str, str]:
        """The environment for a child of this run."""
        return child_environment(self._environment, self.proxy.url, self.proxy.base_url)

    def _announce(self, answers: str) -> None:
        """Let the owner's other programs find the door: who watches the run answers its requests there."""
        recorder = self.recorder
        found = Rendezvous(
            run=recorder.run, attempt=recorder.attempt_id, pid=os.getpid(), url=self.proxy.url, answer=answers
        )
        with suppress(OSError):  # a full disk: the run is recorded all the same, and the log says if it cannot be
            announce(recorder.run_directory.parent, found)

    def _withdraw(self) -> None:
        withdraw(self.recorder.run_directory.parent, self.recorder.attempt_id)

    def close(self, disposition: str = "complete", reason: str | None = None) -> Path:
        """Stop the proxy and seal. Returns the path that names the recording.

        One that failed open is not sealed: it stays as a crash would leave it, and `lost` says what it lacks.
        """
        self._withdraw()
        self.boundary.asks.close()
        self.proxy.close()
        try:
            if self.boundary.workspace is not None:
                self.boundary.workspace.ends()
            return self.recorder.seal(disposition, reason)
        except BaseException as error:
            self.recorder.close()
            if self._losses is None or not isinstance(error, WorldlineError | OSError):
                raise
            self._losses.met(error)
            return self.recorder.run_directory

    def discard(self) -> None:
        """Stop, and leave no trace of an attempt in which nothing happened."""
        self._withdraw()
        self.boundary.asks.close()
        self.proxy.close(drain_seconds=0)
        self.recorder.discard()

    def leave(self) -> None:
        """Stop without sealing: what is on disk stays as a crash would leave it."""
        self._withdraw()
        self.proxy.close(drain_seconds=0)
        self.recorder.close()


def _door_of(spec: Spec) -> Callable[[Recorder], RecordBoundary]:
    if not spec.fail_open:
        return RecordBoundary
    from worldline.engine.fail_open import FailOpenBoundary

    return FailOpenBoundary


class ReplaySession:
    """Serves a recording through a proxy. Raises `Ineligible` with reasons.

    `secrets` gives the values of labels; the environment's count too; a label without a value gets a placeholder.
    `masks` and `calibrates` are as `ReplayBoundary` has them.
    """

    def __init__(
        self,
        recording: Recording,
        environment: Mapping[str, str],
        secrets: Mapping[str, str] | None = None,
        tools: str = "refuse",
        watch: Callable[[int], None] = lambda size: None,
        masks: Iterable[Mask] | None = (),
        calibrates: bool = False,
    ) -> None:
        from worldline.engine.replay import ReplayBoundary, resolve_secrets

        self.recording = recording
        self.secrets = {**resolve_secrets(recording, environment), **(secrets or {})}
        self.boundary = ReplayBoundary(recording, self.secrets, tools, watch, masks, calibrates)
        # No upstream is ever asked: the bases only name the providers.
        bases = {name: provider.base or NOWHERE for name, provider in PROVIDERS.items()}
        self.proxy = Proxy(self.boundary, bases, lambda value: None, Door(self.boundary, self.info))
        self._environment = environment
        self._tools = tools

    def info(self) -> dict[str, Any]:
        """What a joining process is told."""
        return {
            "mode": "replay",
            "run": self.recording.run_id,
            "secrets": self.boundary.vault.labels,
            "path": str(self.recording.path.absolute()),
        }

    def environment(self, *, alone: bool = False) -> dict[str, str]:
        """The environment for the re-driven agent: placeholders where a key or a registered secret is not at hand.

        A program of its own (`alone`) has no way out but the record, unless its tools run: what asks for another
        address is refused and named.
        """
        from worldline.engine.replay import placeholder

        keys = {key: placeholder(key) for key in absent_keys(self._environment, self.secrets)}
        child = child_environment(self._environment, self.proxy.url, self.proxy.base_url, {**keys, **self.secrets})
        return child | no_way_out(self.proxy.port) if alone and self._tools == "refuse" else child

    def close(self, ended: int | None = None) -> ReplayReport:
        """Stop the proxy and judge; `ended` is the agent's exit code, 1 where it raised in process."""
        self.proxy.close(drain_seconds=1.0)
        report = self.boundary.report(ended)
        if report.verdict == "diverged":
            kept = self.recording.header.data.get("environment", {})
            report.notes = [*differences_of_environment(kept, self._environment), *report.notes]
        report.notes += self._strays()
        return report

    def calibrated(self) -> Calibration:
        """Stop the proxy and say what differed, in place of a judgement."""
        self.proxy.close(drain_seconds=1.0)
        found = self.boundary.calibration()
        found.notes += self._strays()
        return found

    def _strays(self) -> list[str]:
        return [
            f"it asked for {address}, which is not in the record: refused, since nothing goes out on a replay "
            "(--tools run lets it)"
            for address in self.proxy.strays
        ]


def _http_proxy(environment: Mapping[str, str]) -> str | None:
    """The forward proxy towards the providers, where the environment names one."""
    return next(
        (environment[n] for n in ("HTTPS_PROXY", "https_proxy") if environment.get(n, "").startswith("http://")), None
    )
