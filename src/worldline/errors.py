"""Every error that Worldline raises, in one tree. Each class carries the exit code that the command line ends with.

WorldlineError                      4   anything of ours
|- UsageError                       64  asked for in a way that cannot be answered
|  |- RecordingNotFound             64
|  |- AmbiguousRun                  64
|  |- NotARecording                 64
|  |- UnknownStep                   64  a step, row or call that the run does not have
|  |- SecretRefused                 64  a secret too short to be found reliably
|  `- CommandNotFound               4
|- ValueRefused                     4   a value that a record cannot carry, with its path
|- RecordError                      4   the record could not be written
|  |- LogBroken                     4   a write or sync failed; the writer is dead
|  |- WriterConflict                4   another writer holds the attempt
|  |- AttemptClosed                 4
|  |- PortInUse                     4
|  |- SignatureFailed               4   ssh-keygen is not here, or could not sign
|  |- BoundReached                  4   a bound of the recording spec ended the recording
|  `- SecretFound                   4   policy `stop` met a registered secret
|- ReadError                        1   the record could not be read as asked
|  |- Damaged                       1   bytes are not what was written, with file and offset
|  |  `- Corrupt                    1   a part of a snapshot is gone, or not what its digest says
|  |- ProofFailed                   1   a proof does not prove what it says
|  |- NothingRemoved                1   no rule found anything to take out
|  |- Unsealed                      3   only what is sealed can be proven or signed
|  |- LineageBroken                 1   the run that a branch left is gone, or is not what it was bound to
|  |- Contained                     3   a secret was found in it: it is in quarantine
|  |- UnattestedResultError         3   a result is published that no sealed attempt vouches for
|  `- NewerFormat                   3
|- ExpiryRefused                    3   nothing of the recording can be expired in this way
|- AnnotationRefused                3   nothing can be added beside the recording where it lies
|- ReplayError                      1
|  |- Diverged                      1   the agent asked for something else than the record holds
|  |- NotReproducible               1   the steps before a fork cannot be served to this agent, with the JSON path
|  `- Ineligible                    3   the record cannot be replayed in this way, with reasons
|     `- VerifierIsWriter           3   who wrote a recording cannot verify its replay
|- AlreadyAnswered                  3   a request for permission that waits for no answer any more
|- EffectRefused                    3   a tool with effects was not run on a live branch; the agent sees it as its error
|  |- OutcomeUnknown                3   whether the effect happened before is not known
|  `- PolicyFailed                  3   a rule about it could not be evaluated
|- SubstrateError                   4   an environment could not be kept, branched or restored
|  |- Unavailable                   3   this substrate cannot be had here, with why
|  |- Busy                          3   processes hold the environment, with pids and open files
|  |- NotQuiescent                  3   threads, sockets or loops run that a snapshot would tear
|  |- Unsupported                   3   the environment has something that the substrate cannot keep
|  |- DepthExceeded                 3   more snapshots on one another than the substrate takes
|  |- StaleBase                     3   what a snapshot stands on changed, or is gone
|  |- EnvironmentFailed             4   an environment's own code raised an exception
|  |- SeqMismatch                   4   the two halves of a checkpoint are of different rows
|  |- ReseedFailed                  4   a branch would share its chance with a twin; its gate stays shut
|  |- ResourceExhausted             4   disk, memory, files or processes ran out; nothing was published
|  `- StateRefused                  4   the environment is not in the state for that
|- NoVerdict                        4   a verifier raised, hung, or gave no score: it judged nothing
|- Cancelled                        4   a batch of rollouts was cancelled before it was through
|- JoinError                        4   the run named by WORLDLINE_URL could not be reached or refused
`- NoRunInContext                   4   several runs are open and the caller is in none of them
"""

from __future__ import annotations

from typing import Any, ClassVar, Self


class WorldlineError(Exception):
    """Base of all errors of this package.

    `facts` holds what the message was made of (file, offset, seq, path ...), for programs; `exit_code` is what the
    command line ends with.
    """

    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.facts: dict[str, Any] = facts

    @property
    def kind(self) -> str:
        """The error's name as reports print it, in kebab-case: `RecordingNotFound` is `recording-not-found`."""
        name = type(self).__name__
        return "".join("-" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


class UsageError(WorldlineError):
    """Asked for in a way that cannot be answered: a wrong argument, a name that names nothing."""

    exit_code = 64


class RecordingNotFound(UsageError):
    """No recording has that path, id or prefix."""


class AmbiguousRun(UsageError):
    """A prefix that several runs share. `facts["candidates"]` lists them."""


class NotARecording(UsageError):
    """The path exists but holds no recording."""


class UnknownStep(UsageError):
    """The run has no such step, row or call. `facts` has what was asked for."""

    @classmethod
    def among(cls, number: int, found: range) -> Self:
        """For a step that is not among those of the run."""
        several = f"steps {found.start:,} to {found.stop - 1:,}" if len(found) > 1 else f"step {found.start:,} alone"
        return cls(f"no step {number:,}: the run has {several if found else 'no steps'}", step=number, steps=len(found))


class SecretRefused(UsageError):
    """A secret under 8 bytes: its value would be found in innocent text everywhere."""


class CommandNotFound(UsageError):
    """The command to record or replay cannot be started."""

    exit_code = 4


class ValueRefused(WorldlineError):
    """A value that no row can carry (a set, a non-string key, an object). `facts["path"]` is its JSON path."""


class RecordError(WorldlineError):
    """The record could not be written."""


class LogBroken(RecordError):
    """A write or a sync failed. The writer is dead: no failed sync is retried. Rows before `facts["seq"]` stand."""


class WriterConflict(RecordError):
    """Another writer holds this attempt."""


class AttemptClosed(RecordError):
    """The attempt is sealed or its recorder was closed; nothing more can be appended."""


class PortInUse(RecordError):
    """The port asked for is taken."""


class SignatureFailed(RecordError):
    """`ssh-keygen` cannot be run, or could not sign with the key."""


class BoundReached(RecordError):
    """The recording came to a bound that its spec declares. `facts` has `bound` and `limit`."""


class SecretFound(RecordError):
    """Under the policy `stop` a registered secret was about to be written. `facts["label"]` names it, not its value."""


class ReadError(WorldlineError):
    """The record could not be read as asked."""

    exit_code = 1


class Damaged(ReadError):
    """Bytes of the record are not what was written. `facts` has `file`, `offset` and the last good `seq`."""


class CutShort(Damaged):
    """A bundle without its end, as a download that broke off leaves it. `facts["offset"]` is where it ends."""


class Corrupt(Damaged):
    """A content or folder of a snapshot is gone, or not what its digest says. `facts` has `digest` and `path`."""


class ProofFailed(ReadError):
    """A proof does not lead from its row or prefix to the sealed root, or to the fingerprint that was asked for."""


class NothingRemoved(ReadError):
    """No rule of a redaction finds anything, so there would be nothing to derive. `facts["rules"]` names them."""


class Unsealed(ReadError):
    """The record is not sealed; only what is sealed can be proven or signed."""

    exit_code = 3


class LineageBroken(ReadError):
    """The run that a branch left is not here, or not what the branch was bound to. `facts` has `run` and `seq`."""


class Contained(ReadError):
    """A secret was found in the record later, and it was put in quarantine. `facts` has `label` and `place`."""

    exit_code = 3


class UnattestedResultError(ReadError):
    """The run has a published result that no attempt sealed as complete vouches for: refused, and never run again."""

    exit_code = 3


class NewerFormat(ReadError):
    """The record was written in a format that this version does not know."""

    exit_code = 3


class ExpiryRefused(WorldlineError):
    """Nothing of the recording can be expired: it is not sealed, declares no retention, or the clock is early."""

    exit_code = 3


class AnnotationRefused(WorldlineError):
    """Nothing can be added beside the recording: it is read-only, a URL, or what stands there was changed."""

    exit_code = 3


class ReplayError(WorldlineError):
    """A replay did not come out as recorded, or could not start."""

    exit_code = 1


class Diverged(ReplayError):
    """The agent asked for something the record does not hold.

    `facts` is the divergence: kind, seq, call, path, recorded, actual.
    """


class NotReproducible(ReplayError):
    """The steps before a fork cannot be served to this agent. `facts` is the divergence, with the JSON path."""


class Ineligible(ReplayError):
    """The record cannot be replayed in this way. `facts["reasons"]` lists why, each with a way on."""

    exit_code = 3


class VerifierIsWriter(Ineligible):
    """The process that wrote a recording cannot verify its replay: another one must."""


class AlreadyAnswered(WorldlineError):
    """Somebody else answered the request for permission first, or nobody waits for it any more."""

    exit_code = 3


class EffectRefused(WorldlineError):
    """A tool with effects was not run on a live branch. `facts` has `tool`, `why` and `rule`."""

    exit_code = 3


class OutcomeUnknown(EffectRefused):
    """A call that had started when the record broke off: whether its effect happened, nobody knows."""


class PolicyFailed(EffectRefused):
    """A rule of the policy could not be evaluated for this call: who cannot tell whether it may, refuses."""


class SubstrateError(WorldlineError):
    """An environment could not be kept, branched or restored."""


class Unavailable(SubstrateError):
    """The substrate cannot be had here. `facts` has `substrate` and `why`."""

    exit_code = 3


class Busy(SubstrateError):
    """Processes hold the environment. `facts` has `pids` and `fds`, paths of open files and working directories."""

    exit_code = 3


class NotQuiescent(SubstrateError):
    """Something runs in the environment that a snapshot would tear. `facts["threads"]` names what."""

    exit_code = 3


class Unsupported(SubstrateError):
    """The environment has, or was asked for, what the substrate cannot do. `facts["resource"]` names it."""

    exit_code = 3


class DepthExceeded(SubstrateError):
    """More snapshots on one another than the substrate takes: flatten one. `facts` has `depth` and `limit`."""

    exit_code = 3


class StaleBase(SubstrateError):
    """What a snapshot stands on changed or is gone. `facts` has `ref`."""

    exit_code = 3


class EnvironmentFailed(SubstrateError):
    """An environment's own code raised an exception. `facts` has `raised`, and `where`: its traceback."""


class SeqMismatch(SubstrateError):
    """The halves of a checkpoint are of different rows. `facts` has `environment` and `agent`, their seqs."""


class ReseedFailed(SubstrateError):
    """What a branch would share with its twins could not be drawn anew. Its gate stays shut."""


class ResourceExhausted(SubstrateError):
    """The disk, memory, open files or processes ran out. Nothing was published. `facts["resource"]` says which."""


class StateRefused(SubstrateError):
    """The environment is not in the state for what was asked. `facts` has `state` and `asked`."""


class NoVerdict(WorldlineError):
    """A verifier judged nothing: it raised, gave no score from 0 to 1, or said nothing in its time."""


class Cancelled(WorldlineError):
    """A batch of rollouts was cancelled while it ran: what had not ended has no result."""


class JoinError(WorldlineError):
    """The run that WORLDLINE_URL names could not be reached, or refused the request."""


class NoRunInContext(WorldlineError):
    """Several runs are open in this process and the caller is in none of them."""
