"""`worldline mcp -- SERVER`: stand between an MCP client and its server; record, serve and gate what they say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import click

from worldline.cli import render
from worldline.cli.options import store_option
from worldline.errors import UsageError
from worldline.model.values import readable
from worldline.seams.mcp.effects import Effects
from worldline.seams.mcp.run import Own, Proxied, proxy
from worldline.store.catalog import default_store

LONGEST_NAME = 200


@click.command(
    epilog="""\b
Examples:
  worldline mcp -- python server.py
  worldline mcp --http https://mcp.example.com/mcp --bearer-env SHOP_TOKEN
  worldline mcp --http http://127.0.0.1:8000/mcp --listen 8001
  worldline mcp --prefix mcp__shop__ --effect "get_*=pure" --key "send_mail=mail:{to}" -- python server.py"""
)
@click.option("--http", "url", metavar="URL", help="A server behind streamable HTTP, in place of a command.")
@click.option(
    "--listen", "port", type=click.IntRange(0, 65535), help="Take clients over HTTP on this port, not over stdin."
)
@click.option("--bearer-env", metavar="NAME", help="A variable with the token for the URL; it is never recorded.")
@click.option("--name", help="What this server is called in a run.  [default: its command]")
@click.option("--prefix", default="", metavar="TEXT", help="What the client puts before the names of its tools.")
@click.option("--effect", "effects", multiple=True, metavar="TOOL=EFFECT", help="pure, idempotent or side_effecting.")
@click.option(
    "--capability", "capabilities", multiple=True, metavar="TOOL=WORD", help="What a tool must be allowed to do."
)
@click.option(
    "--key", "keys", multiple=True, metavar="TOOL=TEXT", help="Names an effect by its arguments: send_mail=mail:{to}."
)
@click.option("--trust-hints", is_flag=True, help="Believe the server which of its tools are harmless.")
@click.option(
    "--max-message",
    "most",
    type=click.IntRange(1, 1024),
    default=64,
    show_default=True,
    metavar="MIB",
    help="The longest message that is passed on.",
)
@click.option("--task", help="What a run of its own is about, in words.")
@click.option(
    "--secret-env", "secret_env", multiple=True, metavar="NAME", help="A variable whose value must never be written."
)
@store_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD...]")
def command(
    url: str | None,
    port: int | None,
    bearer_env: str | None,
    name: str | None,
    prefix: str,
    effects: tuple[str, ...],
    capabilities: tuple[str, ...],
    keys: tuple[str, ...],
    trust_hints: bool,
    most: int,
    task: str | None,
    secret_env: tuple[str, ...],
    store: Path | None,
    command: tuple[str, ...],
) -> int:
    """Proxy an MCP server: write this into the client's configuration in place of the server's command.

    Within `record`, `replay` or `fork` it belongs to that run: its calls are recorded, served from the record with the
    server never started, or served as far as the fork and then let through the gate. Outside of a run it records one of
    its own. Stdout is the protocol; all else goes to stderr.
    """
    if bool(command) == (url is not None):
        raise click.UsageError("give the server's command behind --, or its URL with --http")
    if bearer_env is not None and url is None:
        raise click.UsageError("--bearer-env goes with --http")
    judged = Effects(effects, capabilities, keys, trust_hints)
    if trust_hints:
        _say("warn", "the server's hints decide which of its tools run without being asked about")
    secrets = _secrets((*secret_env, *([bearer_env] if bearer_env else [])))
    proxied = Proxied(
        name=name or _name(command, url),
        effects=judged,
        command=command,
        url=url,
        credentials=(("Authorization", f"Bearer {secrets[bearer_env]}"),) if bearer_env else (),
        prefix=prefix,
        port=port,
        most=most << 20,
    )
    own = Own(store=store or default_store(), task=task, secrets=secrets)
    ended = proxy(proxied, own, os.environ, lambda line: _say("live", line))
    if ended.why:
        _say("failed", ended.why)
    if ended.path is not None:
        with render.overheard(last=True):
            render.line(str(ended.path), err=True)
    return ended.code


def _say(mark: str, line: str) -> None:
    with render.overheard():
        render.verdict(mark, line, err=True)


def _name(command: Sequence[str], url: str | None) -> str:
    """What a server is called: its URL without a query, or its command without folders, the same on every machine."""
    if url is not None:
        parts = urlsplit(url)
        return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"[:LONGEST_NAME]
    return readable(" ".join(word.rstrip("/").rpartition("/")[2] for word in command))[:LONGEST_NAME]


def _secrets(names: tuple[str, ...]) -> dict[str, str]:
    secrets = {}
    for name in names:
        if not os.environ.get(name):
            raise UsageError(f"--secret-env {name}: the variable is not set", name=name)
        secrets[name] = os.environ[name]
    return secrets
