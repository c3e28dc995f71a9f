"""The setting of a study: all that a rollout needs to know, wherever it is carried out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from worldline.analysis.attribution.asking import Draw
from worldline.engine.plan import plan_of
from worldline.model.ids import spell
from worldline.run import Run
from worldline.store.reconcile import refuse_doubt
from worldline.store.recording import Recording
from worldline.study.agents import Agent
from worldline.study.verifying import Verifier

LIMIT_SECONDS = 600.0


@dataclass(frozen=True)
class Setting:
    """`attempt` is the recorded run's directory, `folder` the study's.

    `plan` is what every rollout changes (the fields of a fork's plan but `at`), `policy` a file of rules. A rollout
    works in a copy of `workspace`, and the folders that the variables `copies` name are copied for it, too. `keep`
    keeps every rollout; `alone` says that no other runs in the same process at once.
    """

    attempt: Path
    folder: Path
    agent: Agent
    verifier: Verifier
    root: int = 0
    plan: dict[str, Any] = field(default_factory=dict)
    policy: Path | None = None
    workspace: Path | None = None
    copies: tuple[str, ...] = ()
    secrets: dict[str, str] = field(default_factory=dict)
    limit: float = LIMIT_SECONDS
    keep: bool = False
    alone: bool = True

    def recording(self) -> Recording:
        """The run that the study is about."""
        return refuse_doubt(Recording(self.attempt))

    def identity(self, run: Run) -> dict[str, Any]:
        """What rollouts depend on: with another of these it is another study."""
        header = run.recording.header
        return {
            "run": header.data["run"],
            "attempt": header.data["attempt"],
            "head": run.recording.manifest.head if run.recording.manifest is not None else header.h,
            "agent": self.agent.version,
            "verifier": self.verifier.version,
            "root": self.root,
            "plan": self._planned(),
            "policy": self.policy.read_text("utf-8", "replace") if self.policy is not None else None,
            "workspace": str(self.workspace) if self.workspace is not None else None,
            "copies": list(self.copies),
        }

    def _planned(self) -> dict[str, Any]:
        """The plan, whole. Masks count only where there are some: a study of before there were any goes on."""
        plan: dict[str, Any] = msgspec.to_builtins(plan_of(self.plan))
        return plan if self.plan.get("mask") else {name: value for name, value in plan.items() if name != "mask"}


def rollout_key(identity: str, draw: Draw) -> str:
    """The key of a rollout: root, prefix, plan, policy, verifier and k, hashed; the same draw always has the same."""
    return _digest(identity, msgspec.json.encode(draw).decode())


def rollout_seed(root: int, draw: Draw) -> str:
    """The seed of a rollout, counter-based: root seed, prefix or shared stream, and k."""
    return _digest(str(root), msgspec.json.encode(draw.chance).decode())


def rollout_run(started_ms: int, key: str) -> str:
    """The id of the run that a rollout becomes: it sorts beside the run it left, and is the same on every executor."""
    return spell("run", started_ms, int(key[:20], 16))


def identity_digest(identity: dict[str, Any]) -> str:
    """One word for all that rollouts depend on."""
    return _digest(msgspec.json.encode(identity, order="sorted").decode())


def _digest(*words: str) -> str:
    return hashlib.sha256("\x00".join(words).encode("utf-8", "surrogatepass")).hexdigest()
