"""A request is stored as what it adds: cutting loses nothing, contexts rebuild byte for byte, nothing stands twice."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from worldline.model.chain import ContextReader, ContextWriter, context_hash, cut

texts = st.text(st.characters(), max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.lists(st.tuples(texts, inner), max_size=4).map(tuple),
    max_leaves=12,
)


def odd_json(value: Any, chance: random.Random) -> str:
    """JSON text with white space anywhere, escapes at will, and repeated keys (a tuple of pairs is an object)."""
    space = lambda: chance.choice(["", "", " ", "\n\t", "\r"])  # noqa: E731
    if isinstance(value, tuple):
        pairs = [f"{space()}{odd_json(k, chance)}{space()}:{space()}{odd_json(v, chance)}" for k, v in value]
        return "{" + ",".join(f"{pair}{space()}" for pair in pairs) + space() + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{space()}{odd_json(v, chance)}{space()}" for v in value) + space() + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=chance.random() < 0.5)
    return json.dumps(value)


bodies = st.tuples(
    st.lists(st.tuples(texts | st.sampled_from(["messages", "tools", 'a"b]']), json_values), max_size=5),
    st.randoms(use_true_random=False),
).map(lambda pair: odd_json(tuple(pair[0]), pair[1]).encode("utf-8", "surrogatepass"))


@given(bodies | st.binary() | bodies.flatmap(lambda b: st.integers(0, len(b)).map(lambda n: b[:n])))
@example(b'{"a":[1],"a":[2,3]}')
@example(b'{"a":[1 ,2 , 3],"b":[ ]}')
@example(b'{"a\\u0022]":["\\"]",[[],"[" ]], "b" : [ {"c":[1]} , 2 ] }')
@example(b'\xef\xbb\xbf{"a":[1]}')
@example(b'{"a":[1]}{"a":[1]}')
@example(b'{"a":[NaN,1]}')
@example(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}")
def test_cutting_and_joining_give_the_exact_bytes(body: bytes) -> None:
    assert cut(body).join() == body


def test_every_way_of_laying_out_an_array_that_encoders_use_is_cut() -> None:
    body = {"model": "m", "messages": [{"a": 1}, {"b": [2]}, "x"], "tools": [{"t": 1}], "stream": True}
    for separators, indent in (((",", ":"), None), ((", ", ": "), None), ((",", ": "), 2), ((",", ": "), "\t")):
        text = json.dumps(body, separators=separators, indent=indent).encode()
        parts = cut(text)
        assert parts.join() == text
        assert {a.name: [json.loads(e) for e in a.elements] for a in parts.arrays} == {
            "messages": body["messages"],
            "tools": body["tools"],
        }
        assert b"messages" in parts.template and b'"x"' not in parts.template


class Log:
    """What a log would carry: row forms through JSON, and how often each element was stored."""

    def __init__(self) -> None:
        self.writer = ContextWriter()
        self.rows: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.stored: list[bytes] = []

    def request(self, body: bytes) -> None:
        call = f"c{len(self.rows)}"
        form = self.writer.encode(call, body)
        for text in [form["template"], *(text for array in form["arrays"] for text in array["add"])]:
            if isinstance(text, bytes):
                self.stored.append(text)
        self.rows.append((call, json.dumps(form, default=lambda text: {"hex": text.hex()})))
        self.bodies.append(body)

    def rebuilt(self) -> list[bytes]:
        reader = ContextReader(lambda text: bytes.fromhex(text["hex"]), lambda add: add)
        forms = [(call, json.loads(form)) for call, form in self.rows]
        found = [reader.rebuild(call, form) for call, form in forms]
        assert [context_hash(body) for body in found] == [form["context_hash"] for _, form in forms]
        return found


elements = st.sampled_from([f"message {n} " + "x" * n for n in range(12)])
edits = st.lists(
    st.one_of(
        st.tuples(st.just("append"), elements),
        st.tuples(st.just("mark"), st.integers(1, 2)),
        st.tuples(st.just("edit"), st.integers(0, 30), elements),
        st.tuples(st.just("truncate"), st.integers(0, 30)),
        st.tuples(st.just("compact"), st.integers(1, 30)),
        st.tuples(st.just("fork"), st.integers(0, 30)),
        st.tuples(st.just("lane"), st.integers(0, 2)),
    ),
    max_size=30,
)


def as_body(messages: list[str], marked: int, lane: int) -> bytes:
    shown: list[dict[str, Any]] = [{"role": "user", "content": text} for text in messages]
    for message in shown[len(shown) - marked :] if marked else []:
        message["cache_control"] = {"type": "ephemeral"}
    tools = [{"name": f"tool{n}"} for n in range(lane)]
    return json.dumps({"model": f"m{lane}", "tools": tools, "messages": shown}).encode()


@given(edits)
def test_any_history_of_contexts_rebuilds_and_stores_each_element_once(history: list[tuple[Any, ...]]) -> None:
    log, lanes, lane, marked, past = Log(), [[], [], []], 0, 0, [[]]  # type: ignore[var-annotated]
    for word, *details in history:
        messages = lanes[lane]
        match word:
            case "append":
                messages.append(details[0])
            case "mark":
                marked = details[0]
            case "edit" if messages:
                messages[details[0] % len(messages)] = details[1]
            case "truncate":
                del messages[details[0] :]
            case "compact" if messages:
                messages[: details[0]] = [f"summary of {details[0]}"]
            case "fork":
                lanes[lane] = list(past[details[0] % len(past)])
            case "lane":
                lane = details[0]
        past.append(list(lanes[lane]))
        log.request(as_body(lanes[lane], min(marked, len(lanes[lane])), lane))
    assert log.rebuilt() == log.bodies
    assert len(log.stored) == len(set(log.stored))
    distinct = {element for body in log.bodies for array in cut(body).arrays for element in array.elements}
    assert set(log.stored) >= distinct
    assert set(log.stored) - distinct == {cut(body).template for body in log.bodies}


@settings(max_examples=50)
@given(st.lists(bodies, max_size=5))
def test_any_bodies_in_a_row_rebuild(many: list[bytes]) -> None:
    log = Log()
    for body in [*many, *many, b"", b"no json", b"\xff\x00"]:
        log.request(body)
    assert log.rebuilt() == log.bodies
    assert len(log.stored) == len(set(log.stored))


def test_a_long_conversation_adds_what_is_new_and_a_moved_marker_costs_two_elements() -> None:
    log = Log()
    for turn in range(1, 60):
        log.request(as_body([f"turn {n} " + "y" * 4000 for n in range(turn)], min(2, turn), 0))
        form = json.loads(log.rows[-1][1])
        # The new message; the one that lost its marker; the one between them stands already.
        assert sum("hex" in text for array in form["arrays"] for text in array["add"]) <= 2
        assert len(log.rows[-1][1]) < 4 * 4200 * 2
    assert log.rebuilt() == log.bodies


@pytest.mark.parametrize("where", ["add", "base", "template", "between"])
def test_a_changed_stored_element_does_not_rebuild(where: str) -> None:
    log = Log()
    log.request(as_body(["one", "two"], 0, 1))
    log.request(as_body(["one", "two", "three"], 0, 1))
    reader = ContextReader(lambda text: bytes.fromhex(text["hex"]), lambda add: add)
    first, second = json.loads(log.rows[0][1]), json.loads(log.rows[1][1])
    messages = next(array for array in first["arrays"] if array["name"] == "messages")
    if where == "add":
        messages["add"][0]["hex"] = messages["add"][0]["hex"].replace(b"one".hex(), b"eno".hex())
    elif where == "template":
        first["template"]["hex"] = first["template"]["hex"].replace(b"m1".hex(), b"m2".hex())
    elif where == "between":
        messages["between"] = ["", " , ", ""]
    else:
        second["arrays"][-1]["base"][0] = "00" * 32
    met = context_hash(reader.rebuild("c0", first)) == first["context_hash"]
    assert met == (where == "base")
    if where in ("add", "base"):  # what follows leans on it and is named as lost, never rebuilt as something else
        with pytest.raises(ValueError, match="never stored"):
            reader.rebuild("c1", second)
