"""The pytest plugin: the `replay` fixture re-drives an agent from a recording, with the network shut.

    def test_refund(replay):
        report = replay("tests/runs/refund", agent_main)
        assert report.equivalent, report.first_divergence

No key is needed, no tool that was recorded is run, and a connection to anywhere but this machine is refused.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from worldline.engine.replay import ReplayReport

LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})


class NetworkShut(OSError):
    """A replayed agent tried to reach the network: it did something that the recording does not hold."""


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ReplayReport]]:
    """`replay(recording, agent, *, tools="refuse", secrets=None, mask=())` -> `ReplayReport`.

    `recording` is a path, an id or `latest`; `agent` is a function of no arguments, sync or async.
    """
    from worldline.run import open as open_run  # loaded late: the plugin is imported by every pytest run

    _shut_network(monkeypatch)

    def run(
        recording: str | Path,
        agent: Callable[[], Any] | None = None,
        *,
        tools: str = "refuse",
        secrets: Mapping[str, str] | None = None,
        mask: str | Iterable[str] = (),
    ) -> ReplayReport:
        return open_run(recording).replay(agent, tools=tools, secrets=secrets, mask=mask)

    yield run


def _is_address(name: str | None) -> bool:
    """Whether looking `name` up asks nobody: no name at all, or a numeric address."""
    try:
        return not name or bool(ipaddress.ip_address(name.partition("%")[0]))
    except ValueError:
        return False


def _shut_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def check(sock: socket.socket, address: Any) -> None:
        if sock.family in (socket.AF_INET, socket.AF_INET6) and str(address[0]) not in LOCAL:
            raise NetworkShut(f"the replayed agent tried to connect to {address[0]}:{address[1]}")

    def checked_connect(self: socket.socket, address: Any) -> None:
        check(self, address)
        connect(self, address)

    def checked_connect_ex(self: socket.socket, address: Any) -> int:
        check(self, address)
        return connect_ex(self, address)

    def checked_look_up(look_up: Callable[..., Any]) -> Callable[..., Any]:
        def checked(host: Any, *args: Any, **kwargs: Any) -> Any:
            name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
            if name not in LOCAL and not _is_address(name):
                raise NetworkShut(f"the replayed agent tried to look up {name}")
            return look_up(host, *args, **kwargs)

        return checked

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        monkeypatch.setattr(socket, name, checked_look_up(getattr(socket, name)))
    monkeypatch.setattr(socket.socket, "connect", checked_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", checked_connect_ex)
