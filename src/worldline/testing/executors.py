"""What every executor has to hold, for those who write one: a test for each of `CHECKS`, called with `opens`.

`opens(work, flight)` opens the executor. The works stand here, so that a process that is spawned can import them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from worldline.engine.executors.executor import Done, Executor, Heard, Job, Work, settle
from worldline.errors import Cancelled

Opens = Callable[[Work, int], Executor]


def jobs(*specs: object) -> list[Job]:
    """A job for each: its key is its number, its spec the JSON of what was given."""
    return [Job(str(number), msgspec.json.encode(spec)) for number, spec in enumerate(specs)]


def doubled(spec: bytes) -> bytes:
    """Twice a number; a text raises."""
    return msgspec.json.encode(2 * msgspec.json.decode(spec, type=int))


def meets(spec: bytes) -> bytes:
    """`[folder, name, others]`: leaves its name and waits until all others have come. Shows how many run at once."""
    folder, name, others = msgspec.json.decode(spec, type=tuple[str, str, list[str]])
    (Path(folder) / name).touch()
    while not all((Path(folder) / other).exists() for other in others):
        threading.Event().wait(0.002)
    return spec


def counts_tries(spec: bytes) -> bytes:
    """`[folder, failures]`: raises as often as it is told, then says how often it was asked."""
    folder, failures = msgspec.json.decode(spec, type=tuple[str, int])
    asked = len(list(Path(folder).iterdir())) + 1
    (Path(folder) / str(asked)).touch()
    if asked <= failures:
        raise OSError(f"no room, try {asked}")
    return msgspec.json.encode(asked)


def leaves(spec: bytes) -> bytes:
    """Asks to leave the process."""
    raise SystemExit(3)


def results_stand_in_the_order_of_the_batch(opens: Opens, folder: Path) -> None:
    """The first job waits for the last where two run at once; its result stands first all the same."""
    with_two = _opened(opens, meets, 2)
    try:
        others = ["b"] if _flight(with_two) > 1 else []
        batch = jobs([str(folder), "a", others], [str(folder), "b", []])
        ended: list[int] = []
        done = with_two.submit(batch, lambda index, done: ended.append(index))
    finally:
        with_two.close()
    assert [each.key for each in done] == ["0", "1"]
    assert [each.value for each in done] == [job.spec for job in batch]
    assert sorted(ended) == [0, 1]


def what_raises_is_lost_and_ends_nothing(opens: Opens, folder: Path) -> None:
    """A job that raises, or asks to leave, is lost with its reason; its neighbours are not."""
    executor = _opened(opens, doubled, 2)
    try:
        first, second, third = executor.submit(jobs(1, "two", 3))
    finally:
        executor.close()
    assert (first.value, third.value) == (b"2", b"6")
    assert second.value is None and second.lost is not None and "ValidationError" in second.lost
    executor = _opened(opens, leaves, 1)
    try:
        (left,) = executor.submit(jobs(None))
    finally:
        executor.close()
    assert left == Done("0", lost="SystemExit: 3")


def what_is_lost_is_asked_again_twice_with_its_key(opens: Opens, folder: Path) -> None:
    """Two losses are made good, a third is not; who listens hears of each job once."""
    for failures, expected in ((2, b"3"), (3, None)):
        place = folder / str(failures)
        place.mkdir()
        executor, heard = _opened(opens, counts_tries, 1), list[tuple[int, Done]]()
        try:
            batch = jobs([str(place), failures])
            hear: Heard = partial(_append, heard)
            (done,) = settle(executor, batch, hear)
        finally:
            executor.close()
        assert (done.value, done.tries, len(list(place.iterdir()))) == (expected, 3, 3)
        assert heard == [(0, done)]


def it_goes_on_after_a_batch_and_closes_twice(opens: Opens, folder: Path) -> None:
    """One batch after the other, an empty one too; closing again does nothing."""
    executor = _opened(opens, doubled, 2)
    assert executor.submit([]) == []
    assert [done.value for done in executor.submit(jobs(1, 2, 3))] == [b"2", b"4", b"6"]
    assert [done.value for done in executor.submit(jobs(4))] == [b"8"]
    executor.close()
    executor.close()


def what_the_listener_raises_ends_the_batch(opens: Opens, folder: Path) -> None:
    """A budget that ends, or Ctrl-C, is raised where the answer is heard; the executor can be closed."""
    executor = _opened(opens, doubled, 1)

    def stop(index: int, done: Done) -> None:
        raise KeyboardInterrupt

    try:
        executor.submit(jobs(1, 2), stop)
        raise AssertionError("what the listener raised was swallowed")
    except KeyboardInterrupt:
        assert [done.value for done in executor.submit(jobs(5))] == [b"10"]
    finally:
        executor.close()


def it_can_be_cancelled(opens: Opens, folder: Path) -> None:
    """A batch that is cancelled raises; the next one runs."""
    executor = _opened(opens, doubled, 1)
    try:
        executor.submit(jobs(*range(1000)), lambda index, done: executor.cancel())
        raise AssertionError("the batch went on")
    except Cancelled:
        assert [done.value for done in executor.submit(jobs(5))] == [b"10"]
    finally:
        executor.close()


def ends_itself(spec: bytes) -> bytes:
    """`[folder, how often]`: kills its process so often, then answers. Only where jobs have processes of their own."""
    folder, times = msgspec.json.decode(spec, type=tuple[str, int])
    asked = len(list(Path(folder).iterdir())) + 1
    (Path(folder) / str(asked)).touch()
    if asked <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return msgspec.json.encode(asked)


CHECKS = (
    results_stand_in_the_order_of_the_batch,
    what_raises_is_lost_and_ends_nothing,
    what_is_lost_is_asked_again_twice_with_its_key,
    it_goes_on_after_a_batch_and_closes_twice,
    what_the_listener_raises_ends_the_batch,
    it_can_be_cancelled,
)


def _append(heard: list[tuple[int, Done]], index: int, done: Done) -> None:
    heard.append((index, done))


def _opened(opens: Opens, work: Work, flight: int) -> Executor:
    return opens(work, flight)


def _flight(executor: Executor) -> int:
    return int(getattr(executor, "flight", 1))
