"""`python -m worldline.testing.provider`: a provider as a process, until SIGTERM or the end of a pipe at its stdin.

When it is ready it prints one line of JSON, `{"openai": URL, "anthropic": URL}`: what `OPENAI_BASE_URL` and
`ANTHROPIC_BASE_URL` take.
"""

from __future__ import annotations

import argparse
import base64
import importlib
import json
import os
import signal
import stat
import sys
import threading
from typing import Any, TextIO, cast

from worldline.errors import UsageError, WorldlineError
from worldline.testing.provider.provider import Provider
from worldline.testing.provider.routes import Request
from worldline.testing.provider.script import Script, parrot

_WITHHELD = ("authorization", "cookie", "x-api-key")
"""Headers whose values do not go to the log: whoever points a real agent here sends a real key."""


def main(arguments: list[str] | None = None) -> int:
    """Run until told to stop. Gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m worldline.testing.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--script", metavar="MODULE:FUNCTION", help="what to play; echoes the user by default")
    parser.add_argument("--log", metavar="FILE", help="append each request as a line of JSON")
    options = parser.parse_args(arguments)
    try:
        script = parrot if options.script is None else load_script(options.script)
        if options.log is None:
            _serve(Provider(script, port=options.port))
        else:
            with open(options.log, "a", encoding="utf-8") as log:
                _serve(Provider(script, port=options.port, on_request=lambda request: _log(request, log)))
    except WorldlineError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


def load_script(name: str) -> Script:
    """The callable that `module:function` names. Raises `UsageError` when there is none."""
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise UsageError(f"--script {name!r} is not of the form module:function", script=name)
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise UsageError(f"--script {name!r}: {error}; modules are sought from here on", script=name) from error
    script = getattr(module, function_name, None)
    if not callable(script):
        raise UsageError(f"--script {name!r}: {module_name} has no function {function_name}", script=name)
    return cast("Script", script)


def _serve(provider: Provider) -> None:
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with provider:
        urls = {"openai": provider.openai_url, "anthropic": provider.anthropic_url, "gemini": provider.gemini_url}
        sys.stdout.write(json.dumps(urls) + "\n")
        sys.stdout.flush()
        if _is_pipe(0):
            threading.Thread(target=_await_end_of_input, args=(over,), daemon=True).start()
        over.wait()


def _is_pipe(descriptor: int) -> bool:
    """Whether somebody holds the other end. A terminal or /dev/null, as `&` gives it, says nothing by its end."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _await_end_of_input(over: threading.Event) -> None:
    # The bare descriptor: a buffered reader would hold a lock that the interpreter needs to shut down.
    while os.read(0, 4096):
        pass
    over.set()


def _log(request: Request, log: TextIO) -> None:
    headers = [[name, "(withheld)" if name.lower() in _WITHHELD else value] for name, value in request.headers]
    line: dict[str, Any] = {"method": request.method, "path": request.path, "headers": headers}
    try:
        line["body"] = request.body.decode()
    except UnicodeDecodeError:
        line["body_base64"] = base64.b64encode(request.body).decode()
    log.write(json.dumps(line, ensure_ascii=False) + "\n")
    log.flush()


if __name__ == "__main__":
    sys.exit(main())
