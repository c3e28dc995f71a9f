"""A bundle of a conversation is smaller than what was said in it."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.engine.recorded import answer, decision, recorder_in
from worldline.store.bundle.pack import pack
from worldline.store.recording import Recording

TURNS = 60
MESSAGE = 4096
WORDS = 8000
PROMISED = 0.6
SAID = [["Content-Type", "application/json"]]


def natural(chance: random.Random) -> Speaker:
    return Speaker(chance)


class Speaker:
    """Says sentences of made-up words. The n-th most frequent word comes about 1/n as often as the first (Zipf)."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        words = list(dict.fromkeys(self._word() for _ in range(WORDS * 3)))[:WORDS]
        self._words = sorted(words[:200], key=len) + words[200:]  # what is said often is short
        self._weights = [1 / (rank + 2.7) for rank in range(len(self._words))]  # Mandelbrot's shift

    def _word(self) -> str:
        chance = self._chance
        syllables = chance.choice((1, 1, 2, 2, 2, 3, 3, 4))
        return "".join(
            chance.choice("bcdfghjklmnprstvwz") + chance.choice("aeiou") + chance.choice(("", "", "n", "r", "s"))
            for _ in range(syllables)
        )

    def message(self) -> str:
        said = ""
        while len(said) < MESSAGE:
            words = self._chance.choices(self._words, self._weights, k=self._chance.randint(6, 18))
            said += " ".join(words).capitalize() + ". "
        return said[:MESSAGE]


def test_a_conversation_in_4_kb_messages_packs_to_six_tenths_of_its_text(tmp_path: Path) -> None:
    speaker = natural(random.Random(7))
    recorder, boundary = recorder_in(tmp_path, task="talk")
    messages: list[dict[str, str]] = []
    for _ in range(TURNS):
        messages.append({"role": "user", "content": speaker.message()})
        asked = json.dumps({"model": "m-1", "messages": messages}).encode()
        said = {"role": "assistant", "content": speaker.message()}
        choice = {"index": 0, "finish_reason": "stop", "message": said}
        body = json.dumps({"id": "r", "model": "m-1", "choices": [choice], "usage": {"prompt_tokens": 1}}).encode()
        answer(boundary, decision(asked, name="openai.chat"), [body], headers=SAID)
        messages.append(said)
    recorder.seal()
    unique = sum(len(message["content"].encode()) for message in messages)
    assert unique == TURNS * 2 * MESSAGE
    packed = pack(Recording(recorder.attempt), tmp_path / "talk.skn")
    ratio = packed.size / unique
    print(f"{packed.size:,} bytes for {unique:,} of text: {ratio:.3f}")
    assert ratio <= PROMISED
