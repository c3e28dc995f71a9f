"""SDK clients: `worldline.wrap(OpenAI())` records in whichever run is open when a call is made, or in none.

`run.wrap(client)` is for one run; what this gives can be made before any, at the top of a module. Sync and async
clients of OpenAI, Anthropic and what is built like them. Their calls are those of the proxy: same keys, same cassette,
and a client that talks to a run's proxy is left to it.
"""

from __future__ import annotations

from typing import Any

from worldline.engine.boundary import Boundary
from worldline.seams.active import current
from worldline.seams.wire.transport import wrap_client


class OpenNow:
    """The run that is open where a request is made, as a transport needs it."""

    @property
    def url(self) -> str | None:
        """The run's own URL; None where nothing records, and the request just goes out."""
        run = current()
        return None if run is None else run.url

    @property
    def boundary(self) -> Boundary:
        """The run's door."""
        run = current()
        assert run is not None, "asked for only where there is a URL"
        return run.boundary


def wrap(client: Any) -> Any:
    """A copy of an SDK client whose calls cross the door of the run that is open; without one they just go out.

    Raises `UsageError` for a client that is built in another way: give its HTTP client `run.transport(...)`.
    """
    return wrap_client(OpenNow(), client)
