"""Does a line of jobs, one model call each, and fails where one of them went bad: nothing imported that takes time."""

from __future__ import annotations

import http.client
import json
import os
from contextlib import closing
from urllib.parse import urlsplit

STEPS = 4


def ask(messages: list[dict[str, object]]) -> str:
    where = urlsplit(os.environ["OPENAI_BASE_URL"])
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    body = json.dumps({"model": "gpt-5", "messages": messages})
    with closing(http.client.HTTPConnection(where.hostname or "", where.port)) as connection:
        connection.request("POST", f"{where.path}/chat/completions", body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    if response.status != 200:
        raise RuntimeError(f"HTTP {response.status}: {answer}")
    return str(answer["choices"][0]["message"]["content"])


def work(place: str = "You work on a line.") -> None:
    messages: list[dict[str, object]] = [{"role": "system", "content": place}]
    said = []
    for number in range(int(os.environ.get("WORKER_STEPS", STEPS))):
        messages.append({"role": "user", "content": f"job {number}"})
        said.append(ask(messages))
        messages.append({"role": "assistant", "content": said[-1]})
    if book := os.environ.get("WORKER_BOOK"):
        with open(book, "a", encoding="utf-8") as file:
            file.write("".join(f"{word}\n" for word in said))
        with open(book, encoding="utf-8") as file:
            if len(file.readlines()) != len(said):
                raise SystemExit("somebody else has written into the book")
    if any(word.startswith("bad") for word in said):
        raise SystemExit(1)


if __name__ == "__main__":
    work()
