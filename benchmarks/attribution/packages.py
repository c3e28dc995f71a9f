"""The published packages, asked about the same runs: each executes the agent in its own way, with its own chance.

They live in the environment of the benchmarks (`.venv-bench`). One that is not there is named, and not measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from benchmarks.attribution.chance import STRIDE, Keyed, key
from benchmarks.attribution.families import Case
from benchmarks.attribution.methods import Answer, Method
from benchmarks.attribution.running import Agent
from benchmarks.measure import installed

SEED_PACKAGE, TIMEFORK, TRACEFORK = "trajectory-causal-attribution", "timefork", "tracefork"
MODULES = {SEED_PACKAGE: "agent_replay", TIMEFORK: "timefork", TRACEFORK: "tracefork"}
BUDGET = 1e6  # dollars that no rollout here costs


def asked_of() -> dict[str, Method]:
    """The packages that are here, by the names of the table."""
    methods: dict[str, Method] = {}
    if installed(MODULES[SEED_PACKAGE]):
        methods |= {f"{SEED_PACKAGE} N={each}": committed(each) for each in (20, 50, 100)}
    if installed(MODULES[TIMEFORK]):
        methods |= {f"{TIMEFORK} k={repeats}": bisected(repeats) for repeats in (1, 5)}
    if installed(MODULES[TRACEFORK]):
        methods[f"{TRACEFORK} k=10"] = ranked(10)
    return methods


def missing() -> list[str]:
    """The packages that are not here, with what one needs."""
    found = [name for name, module in MODULES.items() if not installed(module)]
    return [f"{name} (needs Python 3.12)" if name == TRACEFORK else name for name in found]


def versions() -> str:
    """Which packages are here, in words."""
    return ", ".join(f"{name} {version(name)}" for name, module in MODULES.items() if installed(module))


class Drawn:
    """Dice on a package's own generator."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self._uniform = uniform

    def happens(self, odds: float) -> bool:
        """Whether something of this probability happens."""
        return self._uniform() >= 1 - odds

    def pick(self, weights: Any) -> int:
        """An index, each with its probability."""
        left = self._uniform()
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        return len(weights) - 1


def committed(each: int) -> Method:
    """trajectory-causal-attribution's `attribute`, method contrastive: its point of commitment."""

    def ask(case: Case) -> Answer:
        from agent_replay import attribute, record

        agent, states, verifier = case.run.agent, case.run.states, Keyed(key(*case.seed, "verifier"))
        executed = {"runs": 0, "steps": 0}

        def performed(ctx: Any) -> Any:
            dice, state = Drawn(ctx.rng.random), agent.start
            executed["runs"] += 1

            def step(number: int, state: Any) -> Any:
                executed["steps"] += 1
                return agent.step(number, state, dice)

            for number in range(agent.length):
                state = ctx.llm("decide", partial(step, number, state), number=number, state=state)
            return state

        trajectory = record(performed, session_id="case", verifier=lambda state: agent.passed(state, verifier))
        for number, recorded in enumerate(trajectory.steps):  # the suite's own failing run, in place of a new one
            recorded.inputs = {"number": number, "state": states[number]}
            recorded.output = states[number + 1]
            recorded.compute_hashes(trajectory.steps[number - 1].step_hash if number else "")
        trajectory.result, trajectory.outcome_score = states[-1], 0.0
        executed["runs"] = executed["steps"] = 0
        said = attribute(
            trajectory, performed, lambda state: float(agent.passed(state, verifier)), rollouts=each, on_success="error"
        )
        step = said.culprit_index
        claims = () if said.point_of_commitment is None else (said.point_of_commitment,)
        verdict = "committed" if claims else "unsure"
        return Answer(step, verdict, claims, rollouts=executed["runs"] - 1, steps=executed["steps"])

    return ask


def bisected(repeats: int) -> Method:
    """timefork's `bisect`, each probe drawn up to `repeats` times."""

    def ask(case: Case) -> Answer:
        from timefork.bisect import Verdict, bisect

        rollouts, drawn = case.rollouts(), [0]

        def probe(live_from: int | None) -> bool:
            drawn[0] += 1
            return rollouts.passes(case.run.length if live_from is None else live_from, drawn[0], "probe")

        said = bisect(probe, case.run.length, repeats=repeats, max_probes=24 * repeats)
        found = said.verdict is Verdict.FOUND and said.culprit is not None
        claims = (said.culprit,) if found and said.culprit is not None else ()
        return Answer(said.culprit, said.verdict.value, claims, rollouts=rollouts.count, steps=rollouts.steps)

    return ask


def ranked(trials: int) -> Method:
    """tracefork's `BlameEngine.rank`: each step's answer drawn anew `trials` times, the highest flip rate first."""

    def ask(case: Case) -> Answer:
        import anthropic
        import httpx2
        from tracefork import BlameEngine, StringMatchOracle, Tape, TraceforkTransport

        agent, states = case.run.agent, case.run.states
        executed = {"runs": 0, "steps": 0}

        class Policy(httpx2.BaseTransport):
            """The model behind the agent: a step's request is answered by its policy, the last one by the verifier."""

            def __init__(self, dice: Keyed | None) -> None:
                self._dice = dice

            def handle_request(self, request: httpx2.Request) -> httpx2.Response:
                number, state = json.loads(json.loads(request.content)["messages"][0]["content"])
                executed["steps"] += number < agent.length
                if self._dice is None:
                    content = reply(agent, states, number)
                else:
                    content = response(agent, number, frozen(state), self._dice)
                return httpx2.Response(200, headers={"content-type": "application/json"}, content=content)

        def performed(client: anthropic.Anthropic) -> None:
            executed["runs"] += 1
            state: Any = agent.start
            for number in range(agent.length + 1):
                question = json.dumps([number, state])
                message = client.messages.create(
                    model="claude-sonnet-4-6", max_tokens=100, messages=[{"role": "user", "content": question}]
                )
                text = getattr(message.content[0], "text", "")
                state = frozen(json.loads(text)) if number < agent.length else text

        tape = Tape(agent_name="case")
        recording = TraceforkTransport("record", tape, Policy(None))
        performed(
            anthropic.Anthropic(api_key="sk-ant-none", http_client=httpx2.Client(transport=recording), max_retries=0)
        )
        executed["runs"] = executed["steps"] = 0
        count = [0]

        def perturbed(number: int) -> tuple[bytes, Policy]:
            count[0] += 1
            dice = Keyed(key(*case.seed, "tracefork", count[0]))
            return response(agent, number, states[min(number, agent.length)], dice), Policy(dice)

        said = BlameEngine.rank(
            tape,
            performed,
            StringMatchOracle(success_re="PASSED", failure_re="FAILED"),
            perturb_factory=perturbed,
            k=trials,
            budget_usd=BUDGET,
        )
        top = said.top()
        step = None if top is None or not top.flips else min(top.step_index, agent.length - 1)
        claims = tuple(min(found, agent.length - 1) for found in said.responsible_set)
        return Answer(step, "ranked", claims, rollouts=executed["runs"], steps=executed["steps"])

    return ask


def response(agent: Agent, number: int, state: Any, dice: Keyed) -> bytes:
    """A message in Anthropic's form: what the step came to, or behind the last one the verifier's word."""
    dice.place = number * STRIDE
    if number == agent.length:
        return message("PASSED" if agent.passed(state, dice) else "FAILED")
    return message(json.dumps(agent.step(number, state, dice)))


def reply(agent: Agent, states: tuple[Any, ...], number: int) -> bytes:
    """The message that the recorded run got."""
    return message("FAILED" if number == agent.length else json.dumps(states[number + 1]))


def message(text: str) -> bytes:
    """A text as tracefork's own maker of answers puts it."""
    from tracefork.wire import make_text_response

    return make_text_response(text)


def frozen(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value
