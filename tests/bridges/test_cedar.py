"""Cedar decides about tools on a live branch: what its policies say, what their annotations make of it, and how."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import worldline as wl
from tests.conftest import require
from worldline.engine.content import Content
from worldline.engine.gate import Asked, Ruling
from worldline.errors import UsageError
from worldline.policy.cedar import CedarPolicies, read_cedar
from worldline.policy.rules import rules_here

SHOP = """
@id("harmless")
permit(principal, action, resource) when { context.effect == "pure" };

@id("bob")
permit(principal == Agent::"agent", action == Action::"send", resource) when { context.arguments.to == "bob" };

@id("pretend") @mock("{\\"sent\\": true}")
permit(principal, action == Action::"send", resource) when { context.arguments.to like "*@x.invalid" };

@id("ask-first") @decision("ask") @timeout("0.05")
permit(principal, action == Action::"refund", resource) when { context.arguments.cents <= 100 };

@id("too-much")
forbid(principal, action == Action::"refund", resource) when { context.arguments.cents > 100 };

@id("as-built") @decision("built_in")
permit(principal, action == Action::"book", resource);

@id("again") @outcome("unknown") @decision("ask")
permit(principal, action == Action::"send", resource) when { context has key };
"""


@pytest.fixture(autouse=True)
def cedar() -> None:
    require("cedar", importlib.util.find_spec("cedarpy"), "the extra is not installed")


def asked(tool: str, effect: str | None = "side_effecting", **more: Any) -> Asked:
    own = {name: more.pop(name) for name in ("capability", "idempotency_key", "unknown") if name in more}
    return Asked(
        tool=tool,
        effect=effect,
        arguments=Content.of(more),
        **{"capability": None, "idempotency_key": None, **own},
    )


def told(ruling: Ruling | None) -> tuple[str, str, Any] | None:
    assert ruling is None or (ruling.policy == "shop" and ruling.failed is None)
    return ruling and (ruling.decision, ruling.rule, ruling.value)


def test_policies_and_their_annotations_decide() -> None:
    rule = CedarPolicies(SHOP, "shop").rule
    assert told(rule(asked("look", "pure"))) == ("allow", "harmless", None)
    assert told(rule(asked("send", to="bob"))) == ("allow", "bob", None)
    assert told(rule(asked("send", to="eve@x.invalid"))) == ("mock", "pretend", {"sent": True})
    assert told(rule(asked("refund", cents=100))) == ("ask", "ask-first", None)
    assert told(rule(asked("refund", "pure", cents=101))) == ("deny", "too-much", None), "a forbid wins over a permit"
    assert told(rule(asked("send", to="eve"))) == ("deny", "default deny", None), "what nothing permits is refused"
    assert rule(asked("book")) is None, "the gate decides as it does without a policy"


def test_what_may_have_happened_is_decided_only_by_who_speaks_of_it() -> None:
    rule = CedarPolicies(SHOP, "shop").rule
    assert told(rule(asked("send", to="bob", unknown=True))) == ("deny", "default deny", None)
    assert told(rule(asked("send", to="bob", unknown=True, idempotency_key="k"))) == ("ask", "again", None)
    assert told(rule(asked("refund", cents=500, unknown=True))) == ("deny", "too-much", None), "a forbid always does"


def test_the_strictest_of_several_permits_decides_and_names_itself() -> None:
    both = '@id("all") permit(principal, action, resource);\n' + SHOP
    rule = CedarPolicies(both, "shop").rule
    assert told(rule(asked("send", to="bob"))) == ("allow", "all, bob", None)
    assert told(rule(asked("refund", cents=1))) == ("ask", "ask-first", None)
    assert told(rule(asked("send", to="a@x.invalid"))) == ("mock", "pretend", {"sent": True})
    other = both + '@id("other") @mock("1") permit(principal, action == Action::"send", resource);'
    ruling = CedarPolicies(other, "shop").rule(asked("send", to="a@x.invalid"))
    assert ruling is not None and ruling.decision == "deny"
    assert ruling.failed == "they mock one call with different results" and ruling.rule == "other, pretend"


@pytest.mark.parametrize(
    ("cents", "why"),
    [
        ("plenty", "ask-first: type error: expected long, got string"),
        (2**70, "ask-first: type error: expected long, got string"),
        (1e300, "ask-first: type error: expected long, got string"),
        (float("nan"), "ask-first: type error: expected long, got string"),
        (99.5, "ask-first: type error: expected long, got decimal"),
        ({"__entity": {"type": "Tool", "id": "x"}}, "ask-first: type error: expected long, got string"),
        (b"\x00", "ask-first: type error: expected long, got string"),
        (None, "ask-first: record does not have the attribute `cents`"),
    ],
)
def test_a_policy_that_cannot_be_evaluated_refuses_and_says_why(cents: Any, why: str) -> None:
    allowing = '@id("all") permit(principal, action, resource);\n' + SHOP
    ruling = CedarPolicies(allowing, "shop").rule(asked("refund", cents=cents))
    assert ruling is not None and ruling.decision == "deny", "that another policy permits it is not enough"
    assert ruling.failed is not None and ruling.failed.startswith("error while evaluating policy " + why)


def test_arguments_nested_beyond_what_cedar_reads_are_refused() -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    ruling = CedarPolicies(SHOP, "shop").rule(asked("look", "pure", deep=deep))
    assert ruling is not None and ruling.failed == "an argument nests deeper than 60 levels"


def test_entities_and_a_schema_beside_the_policies(tmp_path: Path) -> None:
    policies = tmp_path / "shop.cedar"
    policies.write_text('permit(principal, action, resource in Shelf::"mail") when { context.arguments.cents < 9 };')
    (tmp_path / "shop.entities.json").write_text(
        '[{"uid": {"type": "Tool", "id": "send"}, "attrs": {}, "parents": [{"type": "Shelf", "id": "mail"}]}]'
    )
    engine = rules_here(policies)
    assert isinstance(engine, CedarPolicies)
    ruling = engine.rule(asked("send", cents=5))
    assert ruling is not None and (ruling.decision, ruling.policy, ruling.rule) == ("allow", "shop.cedar", "policy0")
    ruling = engine.rule(asked("refund", cents=5))
    assert ruling is not None and ruling.decision == "deny"

    schema = tmp_path / "shop.cedarschema"
    schema.write_text(
        "entity Agent; entity Shelf; entity Tool in [Shelf];\n"
        'action "send" appliesTo { principal: Agent, resource: Tool, context: { tool: String, effect?: String,'
        " capability?: String, key?: String, unknown: Bool, arguments: { cents: Long } } };"
    )
    ruling = read_cedar(policies).rule(asked("send", cents=5))
    assert ruling is not None and ruling.decision == "allow"
    ruling = read_cedar(policies).rule(asked("sned", cents=5))
    assert ruling is not None and "does not exist in the supplied schema" in str(ruling.failed)
    ruling = read_cedar(policies).rule(asked("send", cents="5"))
    assert ruling is not None and ruling.decision == "deny" and ruling.failed
    schema.write_text(schema.read_text().replace("cents: Long", "amount: Long"))
    with pytest.raises(UsageError, match=r"no policy: shop\.cedar: policy policy0 against the schema: .*cents"):
        read_cedar(policies)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("permit(principal, action resource);", "unexpected token"),
        ("permit(principal == ?principal, action, resource);", "templates"),
        ('@id("a") permit(principal, action, resource); @id("a") forbid(principal, action, resource);', "id a"),
        ('@decision("maybe") permit(principal, action, resource);', "'maybe'"),
        ('@decision("mock") permit(principal, action, resource);', "both or neither"),
        ('@decision("ask") @mock("1") permit(principal, action, resource);', "both or neither"),
        ('@mock("{") permit(principal, action, resource);', "@mock is no JSON"),
        ('@timeout("soon") permit(principal, action, resource);', "@timeout is in seconds"),
        ('@timeout("nan") permit(principal, action, resource);', "@timeout is in seconds"),
        ('@outcome("lost") permit(principal, action, resource);', "'lost'"),
        ('@decision("ask") forbid(principal, action, resource);', "a forbid refuses"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_runs(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.cedar"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"no policy: bad\.cedar: ") as refused:
        rules_here(path)
    assert why in str(refused.value)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="no policy"):
        rules_here(path)


DONE: list[str] = []


@wl.tool
def send(to: str) -> str:
    DONE.append(f"send {to}")
    return f"sent to {to}"


@wl.tool(capability="irreversible_external")
def refund(cents: Any) -> str:
    DONE.append(f"refund {cents}")
    return "refunded"


@wl.tool(effect="idempotent", capability="trust_mutating")
def trust(key: str) -> str:
    DONE.append(f"trust {key}")
    return "trusted"


CALLS = ((send, "bob"), (send, "eve"), (send, "a@x.invalid"), (refund, 5), (refund, 500), (refund, "all"), (trust, "k"))


class Clerk:
    """Calls its tools, each in a step; `saw` is what came back."""

    def __init__(self) -> None:
        self.saw: list[str] = []

    def __call__(self) -> None:
        self.saw = []
        with wl.record("runs") as run:
            for number, (tool, argument) in enumerate(CALLS):
                with run.step():
                    if number == 0:
                        run.uuid()
                    try:
                        self.saw.append(str(tool(argument)))
                    except wl.WorldlineError as error:
                        self.saw.append(type(error).__name__)


def test_a_branch_under_cedar_does_what_it_permits_and_records_which_policy_said_so(
    quick: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(quick)
    clerk = Clerk()
    clerk()
    DONE.clear()
    permits = '@id("never") @timeout("0.05") permit(principal, action == Action::"trust", resource);'
    Path("shop.cedar").write_text(SHOP + permits)
    run = wl.open("latest", "runs")
    (branch,) = run.fork(clerk, at="step:0", policy="shop.cedar").branches
    assert clerk.saw == [
        "sent to bob",
        "EffectRefused",
        "{'sent': True}",
        "EffectRefused",
        "EffectRefused",
        "PolicyFailed",
        "EffectRefused",
    ]
    assert DONE == ["send bob"], "what must be asked for is not done: nobody answered"
    rows = [event for event in wl.open(branch.path).events() if event.kind == "permission"]
    facts = [(row.src, row.data["facts"].get("policy"), row.data["facts"].get("rule")) for row in rows]
    assert facts == [
        ("auto_approved", "shop.cedar", "bob"),
        ("denied", "shop.cedar", "default deny"),
        ("requested", "shop.cedar", "ask-first"),
        ("denied", None, None),
        ("denied", "shop.cedar", "ask-first"),
        ("denied", "shop.cedar", "too-much"),
        ("denied", "shop.cedar", "default deny"),
        ("requested", "shop.cedar", "never"),
        ("denied", None, None),
        ("denied", "shop.cedar", "never"),
    ]
    assert "cannot be evaluated" in rows[6].data["facts"]["why"]
    assert wl.open(branch.path).replay(clerk).equivalent, "refusals are served from the record, too"
