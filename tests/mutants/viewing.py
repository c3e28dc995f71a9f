"""Faults in what the panel's server gives out, to whom, and in how an agent that asks is answered."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

GUARD = "tests/view/test_guard.py::"
RANGES = "tests/view/test_ranges.py::"
LIVE = "tests/view/test_live.py::"
SERVED = "tests/view/test_served.py::"
ASK = "tests/view/test_ask.py::"
LISTING = "tests/view/test_listing.py::"

MUTANTS = (
    Mutant(
        "any-host",
        9,
        "A foreign name that resolves to this address is answered.",
        "view/server.py",
        "hosts[0].strip().lower() not in own",
        "not hosts[0]",
        (GUARD + "test_another_name_for_this_address_is_refused",),
    ),
    Mutant(
        "any-origin",
        9,
        "Another page that knows the token may read.",
        "view/server.py",
        'return origin in (None, f"http://{host}") and (',
        "return (",
        (GUARD + "test_another_page_is_refused_whatever_it_knows",),
    ),
    Mutant(
        "posts-without-the-word",
        9,
        "A form of another page is taken for the panel's own request.",
        "view/server.py",
        'self.headers.get("X-Worldline") == "1" and (origin',
        "(origin",
        (GUARD + "test_only_the_page_itself_writes",),
    ),
    Mutant(
        "opener-for-ever",
        9,
        "What a browser's command line holds leads to the page as often as one likes.",
        "view/server.py",
        "self._once = None if right else self._once",
        "self._once = self._once",
        (GUARD + "test_what_opens_the_browser_leads_there_once",),
    ),
    Mutant(
        "range-one-short",
        5,
        "The last byte of a range does not come.",
        "view/ranges.py",
        "int(last) + 1) if first and last",
        "int(last)) if first and last",
        (
            RANGES + "test_a_range_is_the_slice_that_its_words_mean",
            RANGES + "test_every_range_of_a_bundle_and_of_a_log_is_its_slice",
        ),
    ),
    Mutant(
        "corrupt-contents-go-out",
        5,
        "Contents are given out whatever their bytes are.",
        "view/contents.py",
        'read=reference["size"] <= MOST_CHECKED',
        "read=False",
        (SERVED + "test_contents_that_are_lost_or_changed_say_so",),
    ),
    Mutant(
        "no-last-row",
        6,
        "The row that ends a run is not given out to who follows it.",
        "view/follow.py",
        "if seq <= self.last or b",
        'if seq <= self.last or b\'"src":"end"\' in line or b',
        (LIVE + "test_what_comes_live_is_byte_for_byte_the_sealed_log",),
    ),
    Mutant(
        "any-line-goes-out",
        6,
        "A line that is no row is given out, and can hold the words of an event.",
        "view/follow.py",
        "        except ValueError:\n            return False\n        if seq",
        "        except ValueError:\n            return True\n        if seq",
        (LIVE + "test_damaged_lines_are_left_out_and_none_can_speak_for_the_server",),
    ),
    Mutant(
        "the-last-answer-wins",
        2,
        "A request stays open when it is answered.",
        "engine/asking.py",
        "        if decision != ESCALATED:\n",
        "        if decision != ESCALATED and waiting.answer.done():\n",
        (ASK + "test_of_many_who_answer_at_once_one_wins_and_the_others_are_told",),
    ),
    Mutant(
        "anybody-answers",
        9,
        "The run's own URL, which the agent has, is enough to answer for a person.",
        "seams/door.py",
        "or not compare_digest(word, self._answers.encode()):",
        "or not word:",
        (ASK + "test_the_words_of_the_door_stand_in_no_log_and_are_for_the_owner_alone",),
    ),
    Mutant(
        "facets-not-forgotten",
        9,
        "What was kept of a contained run for the list stays behind it.",
        "store/listed.py",
        "                (store / FACETS).unlink(missing_ok=True)\n",
        "",
        (LISTING + "test_what_was_kept_of_a_contained_run_is_forgotten",),
    ),
)
