"""Deflating a log block by block, beside who reads it: a block needs none of those before it, and zlib lets others run.

What comes out is one deflate stream, the same as from one pass with a full flush at every border.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

LOG_LEVEL = 2  # a bundle is made about as fast as its log is read; level 6 gives a fifth less at five times the time
_THREADS, _UNDER_WAY = 2, 4  # blocks that wait to be taken are held in memory


class Squeeze:
    """Deflates blocks and gives them to `take` in their order, raw and stored. `offsets` are where they begin."""

    def __init__(self, take: Callable[[bytes, bytes], None]) -> None:
        self._take = take
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="worldline-pack")
        self._under_way: deque[tuple[bytes, Future[bytes]]] = deque()
        self._stored = 0
        self.offsets: list[int] = []

    def __enter__(self) -> Squeeze:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def block(self, raw: bytes, *, last: bool = False) -> None:
        """The next block; behind the `last` one all have been taken."""
        self._under_way.append((raw, self._pool.submit(deflated_block, raw, last)))
        while self._under_way and (last or len(self._under_way) > _UNDER_WAY):
            content, deflated = self._under_way.popleft()
            stored = deflated.result()
            self.offsets.append(self._stored)
            self._stored += len(stored)
            self._take(content, stored)


def deflated_block(raw: bytes, last: bool) -> bytes:
    """One block of a log, up to its full flush, or to the end of the stream."""
    squeeze = zlib.compressobj(LOG_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return squeeze.compress(raw) + squeeze.flush(zlib.Z_FINISH if last else zlib.Z_FULL_FLUSH)
