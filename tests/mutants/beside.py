"""Faults in what stands beside what was sealed: notes, media, and what is given away."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NOTES = "tests/notes/test_notes.py::"
TAMPER = "tests/notes/test_notes_tamper.py::"
KILLED = "tests/notes/test_notes_killed.py::"
MEDIA = "tests/export/test_media.py::"
EXPORT = "tests/export/test_export.py::"
UNPACK = "tests/store/test_unpack.py::"

MUTANTS = (
    Mutant(
        "notes-not-chained",
        5,
        "A line of notes counts whatever its hash is.",
        "store/forget/chained.py",
        "== number and due == line:",
        "== number:",
        (TAMPER + "test_no_flipped_byte_of_a_note_goes_unnoticed_in_a_directory",),
    ),
    Mutant(
        "notes-of-another-run",
        5,
        "Lines of another attempt pass.",
        "store/note_lines.py",
        "if attempt is not None and line.attempt != attempt:",
        "if line.attempt == '':",
        (TAMPER + "test_notes_of_another_run_do_not_pass",),
    ),
    Mutant(
        "notes-of-a-bundle-not-read",
        5,
        "In a bundle nobody looks whether notes chain; its container was made for them.",
        "store/bundle/verify_packed.py",
        "            self.structure += read_lines(whole, entry.name, attempt, self.rows).problems\n",
        "            read_lines(whole, entry.name, attempt, self.rows)\n",
        (TAMPER + "test_a_container_that_was_made_for_changed_notes_does_not_hide_it[another text]",),
    ),
    Mutant(
        "bundle-changed-in-its-place",
        5,
        "A note to a bundle is written over the bundle itself: killed on its way, there is none.",
        "store/bundle/rewrite.py",
        "        with ContainerWriter(temporary) as writer:",
        "        os.rename(path, temporary.with_suffix('.old'))\n        with ContainerWriter(temporary) as writer:",
        (KILLED + "test_a_bundle_is_the_old_one_or_the_new_one_wherever_a_note_is_killed",),
    ),
    Mutant(
        "bundle-not-held",
        5,
        "Two who write notes to a bundle at once do not wait for each other.",
        "store/bundle/rewrite.py",
        "        with alone(path.parent):\n",
        "        if path.parent.is_dir():\n",
        (NOTES + "test_many_writers_at_once_lose_nothing",),
    ),
    Mutant(
        "torn-note-kept",
        3,
        "A line is added behind half a one that a crash left.",
        "store/notes.py",
        "append(held.attempt / name, before.size, [line])",
        "append(held.attempt / name, len(data), [line])",
        (NOTES + "test_what_a_crash_cut_off_is_reported_and_gives_way_to_the_next_line",),
    ),
    Mutant(
        "audit-is-shared",
        9,
        "What is packed for sharing says who looked at what.",
        "store/bundle/pack.py",
        "if not (share and name == AUDIT)}",
        "if not (share and name == MANIFEST)}",
        (NOTES + "test_notes_travel_with_pack_and_the_audit_stays_at_home_when_it_is_shared",),
    ),
    Mutant(
        "page-holds-everything",
        9,
        "A page is made of the whole bundle although nobody asked for that.",
        "view/export_html.py",
        "share=not full",
        "share=False",
        (EXPORT + "test_nothing_restricted_and_no_secret_is_in_a_page",),
    ),
    Mutant(
        "page-begins-with-the-log",
        7,
        "The bytes of a page stand in the order of the bundle, so its first screen waits for the last of them.",
        "view/export_html.py",
        "for begins, ends in ((tail, packed.source.size), (0, tail)):",
        "for begins, ends in ((0, tail), (tail, packed.source.size)):",
        (EXPORT + "test_a_page_holds_exactly_the_shared_bundle_its_end_first",),
    ),
    Mutant(
        "video-on-a-grid",
        7,
        "Pictures stand where the rate of the video has a place for them, not at their own times.",
        "engine/media.py",
        '"-enc_time_base", "1:1000", ',
        "",
        (MEDIA + "test_the_frames_are_the_screenshots_at_their_own_times",),
    ),
    Mutant(
        "restricted-picture-shown",
        9,
        "A video shows pictures of the restricted tier.",
        "engine/media.py",
        'value["$blob"].get("tier") != layout.ORDINARY',
        'value["$blob"].get("tier") is None',
        (MEDIA + "test_nothing_of_the_restricted_tier_is_shown",),
    ),
    Mutant(
        "key-frames-not-compared",
        5,
        "Nobody looks whether the rows that a video names are screenshots of this run.",
        "store/bundle/media.py",
        "return all(times.get(frame.seq) == frame.t for frame in frames)",
        "return len(times) > 0",
        (MEDIA + "test_media_that_are_not_of_this_run_are_reported",),
    ),
    Mutant(
        "a-copy-taken-for-the-commit-point",
        4,
        "The result of a run that came as a bundle looks as if its attempt had published it here.",
        "store/bundle/unpack.py",
        "layout.write_durable(result, (recording.attempt / layout.RESULT).read_bytes())",
        "os.link(recording.attempt / layout.RESULT, result)",
        (UNPACK + "test_the_published_result_is_a_copy_which_no_strict_replay_takes_for_evidence",),
    ),
    Mutant(
        "what-expired-is-forgotten",
        5,
        "A run that came as a bundle does not know that contents of it expired.",
        "store/bundle/unpack.py",
        "for name in (layout.EXPIRY, *layout.BESIDE)",
        "for name in layout.BESIDE",
        (UNPACK + "test_every_old_bundle_becomes_the_very_files_that_it_was_packed_of[v1/expired]",),
    ),
)
