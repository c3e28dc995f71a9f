"""Faults in the MCP proxy: a server's word opens the gate, a replay starts it, a client sees something else."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BAD = "tests/mcp/test_bad_input.py::"
GATE = "tests/mcp/test_gate.py::test_an_effect_happens_once_over_all_branches_and_a_destructive_one_is_asked_about"
HTTP = "tests/mcp/test_http.py::"
REPLAY = "tests/mcp/test_replay.py::"

MUTANTS = (
    Mutant(
        "hints-open-the-gate",
        promise=2,
        breaks="A server that calls a tool read-only is believed without being trusted.",
        file="seams/mcp/effects.py",
        old='if self._trusts and hints.get("readOnlyHint"):',
        new='if hints.get("readOnlyHint"):',
        tests=(GATE,),
    ),
    Mutant(
        "a-key-is-lost-on-the-way",
        promise=2,
        breaks="The key that the user gave a tool's calls does not cross with them.",
        file="seams/mcp/words.py",
        old="idempotency_key=judged.idempotency_key,",
        new="idempotency_key=None,",
        tests=(GATE,),
    ),
    Mutant(
        "destruction-by-a-rule",
        promise=2,
        breaks="A tool that says of itself that it destroys needs nobody's yes.",
        file="seams/mcp/effects.py",
        old='if hints.get("destructiveHint"):',
        new='if not hints.get("destructiveHint"):',
        tests=(GATE,),
    ),
    Mutant(
        "a-replay-starts-the-server",
        promise=2,
        breaks="The server is started with the proxy, whatever its run does.",
        file="seams/mcp/conversation.py",
        old='if self._boundary.mode == "record":\n            await self._live_server()',
        new='if self._boundary.mode != "fork":\n            await self._live_server()',
        tests=(REPLAY + "test_a_call_that_the_record_does_not_have_is_an_error_that_names_the_difference",),
    ),
    Mutant(
        "answers-overtake-each-other",
        promise=5,
        breaks="A recorded answer leaves as soon as it is found.",
        file="seams/mcp/serving.py",
        old="made = self._words.response(frame, answer)\n        await turn(answer)",
        new="made = self._words.response(frame, answer)",
        tests=(REPLAY + "test_answers_come_in_the_order_in_which_they_ended_and_messages_where_they_came",),
    ),
    Mutant(
        "traces-make-the-key",
        promise=5,
        breaks="Tokens and trace ids are a part of what a client asks.",
        file="seams/mcp/words.py",
        old='if k not in ("name", "arguments", "_meta")}',
        new='if k not in ("name", "arguments")}',
        tests=(REPLAY + "test_traces_tokens_ids_and_the_client_s_own_name_are_no_part_of_what_is_asked",),
    ),
    Mutant(
        "what-a-client-answers-is-not-compared",
        promise=5,
        breaks="Any answer to a question of the server is taken for the recorded one.",
        file="seams/mcp/words.py",
        old='{"answer": _said(answer)}',
        new='{"answer": None}',
        tests=(REPLAY + "test_a_client_that_answers_a_question_otherwise_diverges_and_its_call_says_so",),
    ),
    Mutant(
        "messages-quote-restricted-tools",
        promise=9,
        breaks="What a server says during a restricted tool's call stands in the ordinary tier.",
        file="engine/boundary.py",
        old="src.startswith(SOURCE) and self.recorder.restriction.rules:",
        new="src.startswith(SOURCE) and not self.recorder.restriction.rules:",
        tests=(REPLAY + "test_what_a_rule_restricts_stands_in_no_row_and_is_served_all_the_same",),
    ),
    Mutant(
        "the-server-has-the-run-s-address",
        promise=9,
        breaks="A server is given the address of the run, and may write into it.",
        file="seams/mcp/joining.py",
        old="if name != WORLDLINE_URL and not",
        new="if name == WORLDLINE_URL or not",
        tests=(REPLAY + "test_a_server_knows_nothing_of_the_run_it_is_in",),
    ),
    Mutant(
        "children-of-a-server-stay",
        promise=3,
        breaks="Only the server itself is ended, not what it started.",
        file="seams/mcp/stdio.py",
        old="os.killpg(self._process.pid, number)",
        new="os.kill(self._process.pid, number)",
        tests=(BAD + "test_a_client_that_goes_with_a_call_under_way_leaves_it_unknown_and_nothing_running",),
    ),
    Mutant(
        "a-cancelled-call-failed",
        promise=2,
        breaks="Of a call that its client gave up the record says how it ended.",
        file="seams/mcp/conversation.py",
        old='if asked.call is not None and asked.call.kind == "action":\n            await in_thread(live.abandon',
        new='if asked.call is not None and asked.call.kind != "action":\n            await in_thread(live.abandon',
        tests=(BAD + "test_a_call_that_is_never_answered_can_be_cancelled_and_the_next_one_is_answered",),
    ),
    Mutant(
        "resumed-from-the-beginning",
        promise=1,
        breaks="A stream that broke is opened anew in place of behind its last event.",
        file="seams/mcp/http_server.py",
        old='await self._upstream.send("GET", self._target, with_header(sent, LAST_EVENT, last), b"")',
        new='await self._upstream.send("GET", self._target, sent, b"")',
        tests=(HTTP + "test_a_stream_that_breaks_is_resumed_behind_its_last_event",),
    ),
    Mutant(
        "any-page-may-speak",
        promise=9,
        breaks="A web page of another origin reaches the server through the loopback port.",
        file="seams/mcp/listening.py",
        old="urlsplit(origin).hostname not in LOCAL:",
        new="urlsplit(origin).hostname in LOCAL:",
        tests=(HTTP + "test_what_a_server_refuses_over_http_is_refused_the_same_way_live_and_on_a_replay",),
    ),
)
