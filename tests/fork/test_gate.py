"""The gate decides as the table in the documentation says, whatever is on record, whatever the policy, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.recorded import recorder_in
from worldline.engine.content import Content
from worldline.engine.crossing import Call
from worldline.engine.exchanges import Exchange
from worldline.engine.gate import Fate, Fired, Gate
from worldline.errors import UsageError
from worldline.policy.rules import Rule, Rules, read_rules
from worldline.store.recording import Recording

TOOLS, KEYS = ("send", "save"), (None, "k1", "k2")
EFFECTS = ("pure", "idempotent", "side_effecting", None)
CAPABILITIES = (None, "read_only", "code_executing", "trust_mutating", "irreversible_external")


@dataclass(frozen=True)
class Past:
    """A call on record: what it was, its declared key, whether it went out, and how it ended."""

    call: str
    key: str | None
    live: bool
    end: str  # ok, error, unknown


@dataclass(frozen=True)
class Now:
    """A call on a live branch."""

    call: str
    effect: str | None
    capability: str | None
    key: str | None


def reference(
    now: Now,
    before: list[Past],
    later: list[Past],
    rules: Sequence[Rule],
    repeat: bool,
    resumed: bool,
    went_on: bool,
) -> str:
    """The table in plain words: live, ask, refuse, or mock:KEY, mock:RULE, mock:LATER."""
    harmless = now.effect in ("pure", "idempotent") and now.capability not in (
        "trust_mutating",
        "irreversible_external",
    )

    def fired(past: Past) -> bool:
        return past.live and past.key is not None and past.key == now.key

    open_calls = 0
    for past in [*before, *later]:
        if past.call == now.call and past.end == "unknown":
            open_calls += 1
        elif past.call == now.call and past.live and open_calls:
            open_calls -= 1
    same_effect = [past for past in [*before, *later] if fired(past)]
    never_ended = bool(same_effect) and all(past.end == "unknown" for past in same_effect)
    unseen = went_on and not same_effect and (resumed or now.key is not None)  # it may be on no record
    unknown = (open_calls > 0 or never_ended or unseen) and (not harmless or now.key is not None)
    if not unknown and same_effect and not never_ended and not repeat:
        return "mock:KEY"
    rule = next((r for r in rules if (r.outcome == "unknown") == unknown and r.tool in ("*", now.call)), None)
    if rule is not None and (rule.capability is None or rule.capability == now.capability):
        if rule.decision == "allow":
            never = now.capability in ("trust_mutating", "irreversible_external")
            return "ask" if never else "live"
        return {"deny": "refuse", "ask": "ask", None: "mock:RULE"}[rule.decision]
    if unknown:
        return "refuse"
    if harmless or resumed:
        return "live"
    if any(past.call == now.call and past.end != "unknown" and (past.live or past.end == "ok") for past in later):
        return "mock:LATER"
    return "refuse"


def said(fate: Fate) -> str:
    if fate.kind != "mock":
        return fate.kind
    if fate.fired is None:
        return "mock:RULE"
    return "mock:KEY" if "key" in str(fate.why) else "mock:LATER"


def exchange(number: int, past: Past) -> Exchange:
    ended = past.end != "unknown"
    data = {"error": {"type": "E", "message": "no"}} if past.end == "error" else {"result": number}
    return Exchange(
        call=f"c{number}",
        kind="action",
        name=past.call,
        key=past.call,
        lane="main",
        started=2 * number,
        parent=None,
        start_data={},
        start_t=0,
        finished=2 * number + 1 if ended else None,
        data=data if ended else {},
        idempotency_key=past.key,
        mode="live" if past.live else "mock",
    )


def call(now: Now) -> Call:
    facts = {} if now.capability is None else {"capability": now.capability}
    return Call(kind="action", name=now.call, inputs=Content(b"{}"), effect=now.effect, facts=facts)


PASTS = st.lists(
    st.builds(
        Past, st.sampled_from(TOOLS), st.sampled_from(KEYS), st.booleans(), st.sampled_from(["ok", "error", "unknown"])
    ),
    max_size=4,
)
NOW = st.builds(
    Now, st.sampled_from(TOOLS), st.sampled_from(EFFECTS), st.sampled_from(CAPABILITIES), st.sampled_from(KEYS)
)
RULES = st.lists(
    st.one_of(
        st.builds(
            Rule,
            tool=st.sampled_from(["*", *TOOLS]),
            decision=st.sampled_from(["allow", "deny", "ask"]),
            outcome=st.sampled_from([None, "unknown"]),
        ),
        st.builds(Rule, tool=st.sampled_from(["*", *TOOLS]), mock=st.just({"sent": True})),
    ),
    max_size=2,
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    recorder, _ = recorder_in(tmp_path_factory.mktemp("gate"))
    return Recording(recorder.seal())


@settings(max_examples=600)
@given(now=NOW, before=PASTS, later=PASTS, rules=RULES, repeat=st.booleans(), resumed=st.booleans(), on=st.booleans())
def test_the_gate_decides_as_the_table_says(
    recording: Recording,
    now: Now,
    before: list[Past],
    later: list[Past],
    rules: list[Rule],
    repeat: bool,
    resumed: bool,
    on: bool,
) -> None:
    gate = Gate(
        Rules(rules),
        [Fired(exchange(n, past), recording) for n, past in enumerate(before)],
        [Fired(exchange(9 + n, past), recording) for n, past in enumerate(later)],
        allow_repeat=repeat,
        resumed=resumed,
        unrecorded=on,
    )
    fate = gate.decide(call(now), now.call, now.key)
    assert said(fate) == reference(now, before, later, rules, repeat, resumed, on)


def test_a_recorded_result_is_given_once(recording: Recording) -> None:
    """The parent sent two mails; a third on the branch is a new effect."""
    later = [Fired(exchange(n, Past("send", None, True, "ok")), recording) for n in range(2)]
    gate = Gate(Rules(), [], later)
    fates = [gate.decide(call(Now("send", None, None, None)), "send", None) for _ in range(3)]
    assert [fate.kind for fate in fates] == ["mock", "mock", "refuse"]
    assert [fate.fired.exchange.call for fate in fates[:2] if fate.fired] == ["c0", "c1"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[policy.rule]]\ntool = 'x'", "decides nothing"),
        ("[[policy.rule]]\ndecision = 'perhaps'", "a decision is one of"),
        ("[[policy.rule]]\ndecision = 'mock'", "mock = ..."),
        ("[[policy.rule]]\ndecision = 'allow'\nmock = 1", "mock = ..."),
        ("[[policy.rule]]\ndecision = 'deny'\noutcome = 'ok'", "an outcome is"),
        ("[[policy.rule]]\ndecision = 'deny'\neffect = 'loud'", "no effect is 'loud'"),
        ("[[policy.rule]]\ndecision = 'deny'\ncapability = 'fly'", "no capability is 'fly'"),
        ("[[policy.rule]]\ndecision = 'ask'\ntimeout = -1", "a timeout"),
        ("[[policy.rule]]\ndecision = 'ask'\ncolour = 'red'", "colour"),
        ("[policy]\nrules = []", "rules"),
        ("policy = 3", "no policy"),
        ("[[policy.rule", "no policy"),
    ],
)
def test_a_policy_that_cannot_be_kept_is_refused_with_the_rule(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "worldline.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=why.replace("[", r"\[")):
        read_rules(path)
