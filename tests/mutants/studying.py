"""Faults in studies: a rollout is drawn twice, an executor answers out of order, what is no verdict counts as one."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STUDY = "tests/attribution/test_study.py::"
JOURNAL = "tests/attribution/test_journal.py::"
EXECUTORS = "tests/attribution/test_executors.py::"
REPORT = "tests/attribution/test_report.py::"

MUTANTS = (
    Mutant(
        "rollouts-are-not-seeded",
        promise=2,
        breaks="The chance of a rollout is its own and not the study's.",
        file="study/rollout.py",
        old="rollout_seed(setting.root, draw)",
        new="rollout_seed(id(draw), draw)",
        tests=(f"{STUDY}test_async_agents_draw_as_tasks",),
    ),
    Mutant(
        "a-shared-stream-has-prefixes",
        promise=2,
        breaks="Draws that are to share their chance have each their own.",
        file="study/setting.py",
        old="msgspec.json.encode(draw.chance)",
        new="msgspec.json.encode((draw.at, draw.chance))",
        tests=(f"{STUDY}test_draws_that_share_a_stream_share_their_chance",),
    ),
    Mutant(
        "known-rollouts-are-drawn-again",
        promise=5,
        breaks="A study that goes on does not look into its journal.",
        file="study/conduct.py",
        old="if key not in self._known]",
        new="if key]",
        tests=(f"{STUDY}test_the_same_question_is_answered_from_the_journal",),
    ),
    Mutant(
        "a-failed-provider-is-a-failed-agent",
        promise=2,
        breaks="A rollout whose provider is away counts as a failure.",
        file="study/rollout.py",
        old="if not success and (why := _provider_failed(recording)) is not None:",
        new="if success and (why := _provider_failed(recording)) is not None:",
        tests=(f"{STUDY}test_a_provider_that_is_away_makes_rollouts_undefined_not_failed",),
    ),
    Mutant(
        "a-verifier-that-raises-says-no",
        promise=2,
        breaks="A verifier that raises counts as a score of 0.",
        file="study/verifying.py",
        old="                failure.append(error)",
        new="                answer.append(0.0)",
        tests=(f"{STUDY}test_rollouts_without_a_verdict_are_undefined_after_three_tries",),
    ),
    Mutant(
        "the-agent-is-not-replayed",
        promise=2,
        breaks="Nobody looks whether the agent still does what it did.",
        file="study/rollout.py",
        old="if draw.k == 0 and (why",
        new="if draw.k < 0 and (why",
        tests=(f"{STUDY}test_an_agent_that_changed_is_not_reproducible_and_nothing_is_drawn",),
    ),
    Mutant(
        "every-success-is-kept",
        promise=4,
        breaks="Rollouts that went well pile up on the disk.",
        file="study/conduct.py",
        old="if run not in kept and len(kept) < KEPT:",
        new="if run not in kept:",
        tests=(f"{STUDY}test_a_rollout_is_a_run_that_no_list_shows_and_most_are_not_kept",),
    ),
    Mutant(
        "a-changed-journal-is-cut",
        promise=5,
        breaks="A journal that was changed is cut at the change and written on.",
        file="store/studies/journal.py",
        old='if read.trouble != "a crash cut it off":',
        new="if read.trouble is None:",
        tests=(f"{JOURNAL}test_what_a_crash_cut_off_counts_for_nothing_and_what_was_changed_is_refused",),
    ),
    Mutant(
        "a-lost-job-is-not-asked-again",
        promise=2,
        breaks="What was lost on the way is lost at once.",
        file="engine/executors/executor.py",
        old="if done.lost is None or attempt == retries + 1:",
        new="if done.lost is None or attempt:",
        tests=(f"{EXECUTORS}test_a_killed_process_loses_its_job_alone_and_the_job_is_asked_again",),
    ),
    Mutant(
        "workers-are-killed-alone",
        promise=2,
        breaks="What a process of the pool started lives on behind it.",
        file="engine/executors/processes.py",
        old="                os.killpg(pid, signal.SIGKILL)",
        new="                os.kill(pid, signal.SIGKILL)",
        tests=(f"{EXECUTORS}test_what_a_process_started_ends_with_it",),
    ),
    Mutant(
        "the-page-quotes-as-it-is",
        promise=3,
        breaks="What a report quotes is markup.",
        file="view/report_html.py",
        old='    return html.escape("" if value is None else str(value)).encode("utf-8", "replace").decode()',
        new='    return ("" if value is None else str(value)).encode("utf-8", "replace").decode()',
        tests=(f"{REPORT}test_the_page_says_it_all_and_asks_for_nothing",),
    ),
)
