"""The recorder of one attempt: every row goes through it. Values, then vault, then blobs, then log.

It owns the attempt's lock, counts what the manifest will say, and seals. Rows larger than a row may be put their
largest fields into blobs; nothing is cut short.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from worldline import __version__
from worldline.engine import clock
from worldline.engine.bounds import Watch
from worldline.engine.content import Content, holds_secret, redact_json, redacted
from worldline.engine.declared import declared
from worldline.engine.keeping import INLINE, Keeper
from worldline.engine.spec import Bounds, Restriction, Spec
from worldline.engine.tally import Tally
from worldline.errors import AttemptClosed, BoundReached, RecordError, SecretFound, WorldlineError
from worldline.model import events, values
from worldline.model.ids import behind, is_id, slug
from worldline.model.manifest import FORMAT
from worldline.store import layout
from worldline.store.blobs import BlobStore
from worldline.store.log import Appended, LogWriter
from worldline.store.recording import JSON
from worldline.store.seal import publish, read_back
from worldline.store.secrets import shapes
from worldline.store.secrets.vault import Vault

_KNOWN = 4096  # how many short texts without secrets are remembered
LONGEST_NAME = 1024  # characters of a lane, an idempotency key and the like
SYNC_POLICY = "started rows and the end are durable before anything depends on them (fdatasync); others follow"
CLOCK_STEP_NS = 1_000_000_000
PROGRESS_NS = 250_000_000  # how often what a list shows of a running attempt is brought up to date


class Recorder:
    """Opens an attempt and appends to it. Safe from several threads.

    `surroundings` describes the environment for the header; it is given the vault, to show secrets as markers.
    Raises `LogBroken` where the place cannot be written, `SecretRefused` for a secret that is too short.
    """

    def __init__(self, spec: Spec, surroundings: Callable[[Vault], dict[str, Any]] = lambda vault: {}) -> None:
        said = spec.recording.checked(spec.capture) if spec.recording else None
        self.spec = spec
        self.vault = Vault(spec.secrets, spec.policy, key_shapes=spec.shapes)
        self._task = self.vault.redact_text(spec.task) if spec.task is not None else None
        self._surroundings = surroundings
        self.clock = clock.RunClock()
        self.session = self.vault.redact_text(spec.session) if spec.session else clock.new_id("sess")
        # Absolute: contents are written by several threads, and the agent may change directory before they are.
        self.run_directory = (spec.run or spec.store / clock.new_id("run")).absolute()
        self.run, self.attempt_id = self.run_directory.name, _next_attempt(self.run_directory)
        self.attempt = self.run_directory / layout.ATTEMPTS / self.attempt_id
        try:
            layout.make_private(self.attempt, shared=True)
            layout.keep_out_of_git(spec.store)
        except OSError as error:
            raise RecordError(f"cannot record into {spec.store}: {error.strerror}", path=str(spec.store)) from error
        self.log = LogWriter(self.attempt, self.clock)
        self.restriction = Restriction(said.restrict if said else ())
        self.keep = Keeper(
            BlobStore(
                self.attempt, lambda: spec.tier_key or clock.key(), layout.homes(self.run_directory)[-1] / layout.POOL
            ),
            self.log.fatal,
            keeps=spec.capture == "full",
            in_blobs=bool(said and said.retention),
        )
        self._bounds = Watch(said.bounds if said else Bounds())
        self.tally = Tally()
        self.outcome: dict[str, Any] = {}
        self._ending = self._ended = False
        self._harmless: set[str] = set()  # lanes, calls and the like that were looked into
        self._lock = threading.Lock()
        self._calls = spec.first_call
        self._drift = 0
        self._last_progress = 0
        self.sealed: Path | None = None
        try:
            fields = self._fields = self._header()
            _written_here.add(fields["nonce"])
            header = self.append("meta", "header", {}, fields, durable=True)
            with self.log.fatal():
                layout.write_durable(self.attempt / layout.OPEN, layout.opened(fields))
        except BaseException:
            self.discard()
            raise
        self.header_hash = header.h.hex()

    def _header(self) -> dict[str, Any]:
        spec = self.spec
        return {
            "format": FORMAT,
            "session": self.session,
            "run": self.run,
            "attempt": self.attempt_id,
            "nonce": clock.nonce(),
            "t0_wall": str(self.clock.wall_ns),
            "t0_mono": str(self.clock.start_ns),
            "tz": clock.timezone(),
            "platform": described_platform(),
            "writer": f"worldline {__version__}",
            "pid": os.getpid(),
            "capture": spec.capture,
            "limits": {"row": events.MAX_ROW, "inline": INLINE},
            "task": {"id": spec.task_id, "type": spec.task_type, "text": self._task},
            "agent": spec.agent,
            "environment": {
                "platform": sys.platform,
                **spec.environment,
                **({"workspace": spec.workspace.declared()} if spec.workspace else {}),
                **self._surroundings(self.vault),
            },
            "parent": spec.parent,
            "continues": spec.continues,
            "origin": spec.origin,
            "secrets": {
                "labels": list(self.vault.labels),
                "count": len(self.vault.labels),
                "policy": spec.policy,
                "shapes": shapes.VERSION if spec.shapes else 0,
            },
            "durability": SYNC_POLICY,
            # Nothing of it stands there where nothing was declared: such a header is what it was, to the byte.
            **({"recording": spec.recording.declared()} if spec.recording else {}),
            **({"masks": list(spec.masks)} if spec.masks else {}),
            **({"fail_open": True} if spec.fail_open else {}),
        }

    def next_call(self, key: str = "") -> str:
        """A fresh call id of this attempt. `key` is the call's: a digest, in which nobody's words stand."""
        with self._lock:
            self._calls += 1
            identifier = f"c{self._calls - 1}"
            self._remember(identifier, key)
            return identifier

    def _remember(self, *harmless: str) -> None:
        if len(self._harmless) >= _KNOWN:
            self._harmless.clear()
        self._harmless.update(harmless)

    def append(
        self,
        kind: str,
        src: str,
        keys: Mapping[str, Any],
        data: Mapping[str, Any],
        lane: str = "main",
        durable: bool = False,
        request: tuple[str, bytes, str] | None = None,
    ) -> Appended:
        """Append one row. Values in `data` are plain JSON or `Content`; `request` is a model's: (call, body, tier).

        Raises `SecretFound` under the policy `stop`, `BoundReached` past a bound that stops, `ValueRefused`,
        `LogBroken` or `AttemptClosed`.
        """
        if not self._ending:
            if (stopped := self.stopped) is not None:
                raise stopped
            self._bounds.check()
        with self._lock:
            if self._ended:  # a thread that goes on while its run is sealed adds nothing behind the end
                raise AttemptClosed("the recording is closed; nothing more can be added to it")
            names = self._keys({"lane": lane, **keys})
            # Last, since a body once encoded is what later requests build on.
            fields = data if request is None else {**data, "body": self.keep.body(*request)}
            appended = self.log.append(kind, src, names.pop("lane"), names, self._encode(fields))
            self.tally.add(kind, src, lane, keys, fields, appended.seq)
            self._ended = kind == "meta" and src == "end"
        if self._bounds.any:
            self._bounds.passed(self)
        if durable:
            self.log.sync()
            if not self._ending:  # nothing stands behind the end row
                self._watch_clock()
            self._keep_progress()
        return appended

    def _keys(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """The row's short fields, secrets replaced. Raises `ValueRefused` for one that is no name but content."""
        kept = {key: value for key, value in keys.items() if value is not None}
        for key, value in kept.items():
            if isinstance(value, str) and value not in self._harmless:
                kept[key] = self._name(key, value)
        return kept

    def _name(self, key: str, value: str) -> str:
        redacted = self.vault.redact_text(value)
        if len(value) > LONGEST_NAME or not values.is_text(value):
            raise values.refusal(f"a {key} of {len(value):,} characters, or one that is no text,", f"$.{key}")
        if redacted == value:
            self._remember(value)
        return redacted

    def _encode(self, data: Mapping[str, Any]) -> bytes:
        encoded = self._as_it_is(data) if self.keep.inlines else None
        return encoded if encoded is not None else self._by_field(data)

    def _as_it_is(self, data: Mapping[str, Any]) -> bytes | None:
        """A row's data that needs nothing done: small JSON of the ordinary tier without a secret. None for any other.

        A secret of a field is one of the row's bytes, too, so one look at all of them is enough.
        """
        parts, size = [], 0
        for key, value in data.items():
            if type(value) is Content:
                if value.media_type != JSON or value.tier != layout.ORDINARY:
                    return None
                text = value.data
            else:
                try:
                    text = events.encode_json(value)
                except (UnicodeEncodeError, TypeError):
                    return None
            size += len(text)
            if size > INLINE:  # before it is copied
                return None
            parts.append(b'"%b":%b' % (key.encode("ascii"), text))
        encoded = b"{" + b",".join(parts) + b"}"
        return None if len(encoded) > INLINE or holds_secret(encoded, self.vault) else encoded

    def _by_field(self, data: Mapping[str, Any]) -> bytes:
        fields = {key: self._field(value) for key, value in data.items()}
        while sum(map(len, fields.values())) > INLINE:
            key = max(fields, key=lambda name: len(fields[name]))
            fields[key] = events.encode_json(self.keep.blob(fields[key], JSON))
        return b"{" + b",".join(events.encode_json(key) + b":" + text for key, text in fields.items()) + b"}"

    def _field(self, value: Any) -> bytes:
        if isinstance(value, Content):
            content = redacted(value, self.vault)
            return self.keep.field(content, content.data != value.data)
        try:
            encoded = events.encode_json(value)
        except (UnicodeEncodeError, TypeError):
            raise values.refusal("what is no plain text or data", "$") from None
        return redact_json(encoded, self.vault)

    def _watch_clock(self) -> None:
        drift = self.clock.drift_ns()
        if abs(drift - self._drift) > CLOCK_STEP_NS:
            step, self._drift = drift - self._drift, drift
            self.append("meta", "clock", {}, {"step_ns": str(step), "why": "the wall clock stepped"})

    def _keep_progress(self) -> None:
        now = self.clock()
        if now - self._last_progress >= PROGRESS_NS:
            self._last_progress = now
            with suppress(OSError):  # a full disk: the log itself says so when it can no longer be written
                self.progress()

    def progress(self) -> None:
        """Write what a list shows of a running attempt; a derived file, replaced whole, never synced."""
        temporary = self.attempt / f".{layout.PROGRESS}.tmp"
        temporary.unlink(missing_ok=True)
        descriptor = layout.create(temporary)
        try:
            layout.write_all(descriptor, events.encode_json(self.summary()))
        finally:
            os.close(descriptor)
        os.replace(temporary, self.attempt / layout.PROGRESS)

    def summary(self) -> dict[str, Any]:
        """What a list shows of this attempt."""
        return {
            "session": self.session,
            "run": self.run,
            "attempt": self.attempt_id,
            "task": self._task,
            "started": self.clock.wall_ns / 1e9,
            "seconds": round(self.clock() / 1e9, 3),
            **self.tally.summary(),
        }

    def seal(self, disposition: str = "complete", reason: str | None = None) -> Path:
        """End the log, read it back, write result and manifest and, when complete, publish. Returns the path to name.

        A recorder that met a secret under `stop` seals as `sanitized-partial`, one that came to a bound as `partial`.
        Raises what writing raises.
        """
        if self.sealed is not None:
            return self.sealed
        if isinstance(self.stopped, SecretFound):
            disposition, reason = "sanitized-partial", f"a registered secret: {self.stopped}"
        elif self.stopped is not None:
            disposition, reason = "partial", str(self.stopped)
        self._ending = True
        reason = self.vault.masked(values.readable(reason)) if reason is not None else None
        outcome = {**self.outcome} or {"outcome": "unknown"}
        self._watch_clock()
        self.append("meta", "end", {}, {"disposition": disposition, "reason": reason, **outcome}, durable=True)
        try:
            self.log.finish()
            with self.log.fatal():
                chunks, root = read_back(self.attempt, self.log)
                result = {**self.summary(), **outcome, "disposition": disposition, "reason": reason}
                name = slug(self._task or "", "result") + ".json"
                published = publish(
                    self.attempt,
                    name,
                    result,
                    self._facts(disposition, reason, chunks, root),
                    disposition == "complete",
                )
        finally:
            self.log.close()
        self.sealed = published or self.run_directory
        return self.sealed

    def _facts(self, disposition: str, reason: str | None, chunks: list[list[Any]], root: str) -> dict[str, Any]:
        return {
            **declared(self._fields, self.header_hash, self.tally),
            "disposition": disposition,
            "reason": reason,
            "sealed_at": clock.wall_ns(),
            "sealed_by": f"worldline {__version__}",
            "rows": self.log.seq,
            "bytes": self.log.bytes,
            "head": self.log.h.hex(),
            "root": root,
            "blobs": self.keep.listed(),
            "secrets": {
                "labels": list(self.vault.labels),
                "redactions": self.vault.redactions,
                "shapes": dict(sorted(self.vault.shapes.items())),
                "unscanned": self.vault.unscanned,
            },
            "chunks": chunks,
            "torn": None,
        }

    @property
    def stopped(self) -> SecretFound | BoundReached | None:
        """What ends the recording: a secret met under the policy `stop`, or a bound. Only the end is appended then."""
        return None if self._ending else self.vault.met or self._bounds.ended_by

    @property
    def broken(self) -> WorldlineError | None:
        """Why nothing can be recorded any more, or None: a failed write, a secret under `stop`, a bound."""
        return self.stopped or self.log.failure

    def close(self) -> None:
        """Let go without sealing: the attempt stays as a crash would leave it."""
        self.log.close()

    def discard(self) -> None:
        """Let go of an attempt in which nothing has happened, and leave no trace of it."""
        self.log.close()
        shutil.rmtree(self.attempt)
        if self.spec.run is None:
            shutil.rmtree(self.run_directory)


def _next_attempt(run: Path) -> str:
    """An id that sorts behind those of the run's attempts, also where the wall clock stepped back in between."""
    earlier = [attempt.name for attempt in layout.attempts(run) if is_id(attempt.name, "ainst")]
    return behind(clock.new_id("ainst"), earlier[-1]) if earlier else clock.new_id("ainst")


def described_platform() -> dict[str, str]:
    """The machine as the header keeps it, and as a replay compares it."""
    return {"system": platform.system(), "machine": platform.machine(), "python": platform.python_version()}


_written_here: set[str] = set()  # the nonces of the headers that this process, or the one it was forked from, wrote


def wrote(nonce: object) -> bool:
    """Whether this process wrote the recording whose header has this nonce."""
    return nonce in _written_here
