"""The order in which recorded answers leave: sooner finished in the record, sooner let out.

So loops over `as_completed`, and races, see what they saw. An answer waits for every one that finished before it; for
one that nobody has asked for yet it waits a bounded while, then leaves and is counted as `relaxed`. Waiting is a
future, so that neither threads nor event loops are held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worldline.engine.exchanges import Exchange

_Freed = tuple["Future[None]", threading.Timer | None]  # a turn that comes now, and what would have ended its waiting
GRACE_SECONDS = 2.0  # how long an answer waits for a concurrent call that has not come


def at_once(into: Future[None] | None = None) -> Future[None]:
    """A turn that has come already."""
    turn: Future[None] = into or Future()
    turn.set_result(None)
    return turn


class FinishingOrder:
    """Gives each exchange of `ordered` (by finishing order) its turn. Safe from several threads."""

    def __init__(self, ordered: list[Exchange]) -> None:
        self.relaxed = 0
        self._lock = threading.Lock()
        self._ordered = ordered
        self._next = 0  # all before it have left
        self._left: set[str] = set()
        self._waiting: dict[str, tuple[Exchange, Future[None], threading.Timer]] = {}

    def leaves(self, exchange: Exchange) -> bool:
        """Let `exchange` go here and now where it may, for a caller that goes on in this thread; False where it waits.

        The turn of a thread that has come, without what it takes to wait for one: mostly nothing overlaps.
        """
        with self._lock:
            if exchange.call in self._left:
                return True
            if exchange.call in self._waiting or not self._may_leave(exchange):
                return False
            freed = self._leave(exchange)
        _complete(freed)
        return True

    def turn(self, exchange: Exchange, into: Future[None] | None = None) -> Future[None]:
        """A future that is done when `exchange` may leave; asking again for one that has left is done at once.

        Where `into` is given it is that future, done before those that it lets go.
        """
        with self._lock:
            if exchange.call in self._left:
                return at_once(into)
            if exchange.call in self._waiting:
                return self._waiting[exchange.call][1]
            turn: Future[None] = into or Future()
            freed: list[_Freed]
            if self._may_leave(exchange):
                freed = [(turn, None), *([] if self._held_up(exchange, turn) else self._leave(exchange))]
            else:
                freed = []
                timer = threading.Timer(GRACE_SECONDS, self._give_up, [exchange])
                timer.daemon = True
                self._waiting[exchange.call] = (exchange, turn, timer)
                timer.start()
        _complete(freed)
        return turn

    def _may_leave(self, exchange: Exchange) -> bool:
        while self._next < len(self._ordered) and self._ordered[self._next].call in self._left:
            self._next += 1
        return self._next >= len(self._ordered) or self._ordered[self._next].end >= exchange.end

    def _leave(self, exchange: Exchange) -> list[_Freed]:
        """Mark `exchange` as gone; the turns that this frees."""
        self._left.add(exchange.call)
        freed: list[_Freed] = []
        while self._waiting:
            first = min(self._waiting.values(), key=lambda entry: entry[0].end)
            if not self._may_leave(first[0]):
                break
            del self._waiting[first[0].call]
            freed.append(first[1:])
            if self._held_up(first[0], first[1]):
                break
            self._left.add(first[0].call)
        return freed

    def _held_up(self, exchange: Exchange, turn: Future[None]) -> bool:
        """Whether those behind this turn, which comes now, wait until its thread has gone on."""
        if isinstance(turn, ThreadTurn):
            turn.gone = lambda: self._gone(exchange)
        return isinstance(turn, ThreadTurn)

    def _gone(self, exchange: Exchange) -> None:
        with self._lock:
            freed = self._leave(exchange)
        _complete(freed)

    def _give_up(self, exchange: Exchange) -> None:
        with self._lock:
            entry = self._waiting.pop(exchange.call, None)
            if entry is None:
                return
            self.relaxed += 1
            freed = [entry[1:], *self._leave(exchange)]
        _complete(freed)


class ThreadTurn(Future[None]):
    """The turn of a thread. The next one comes when this thread has gone on: woken together, they might overtake."""

    gone: Callable[[], None] = staticmethod(lambda: None)

    def wait(self) -> None:
        """Return when the turn has come, with the next one on its way."""
        self.result()
        self.gone()


def _complete(freed: list[_Freed]) -> None:
    for turn, timer in freed:
        if timer is not None:
            timer.cancel()
        if turn.set_running_or_notify_cancel():  # one that was given up while it waited holds up nobody
            turn.set_result(None)
