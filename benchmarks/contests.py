"""All contests, in the order of the table."""

from __future__ import annotations

from benchmarks import again, append, boundary, large, peers, proxied, reading

CONTESTS = (
    *append.CONTESTS,
    *boundary.CONTESTS,
    *reading.CONTESTS,
    *again.CONTESTS,
    *large.CONTESTS,
    *proxied.CONTESTS,
    *peers.CONTESTS,
)
