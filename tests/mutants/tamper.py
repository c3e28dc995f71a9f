"""Faults in what tells a changed record, follows a live one, derives, proves, hides and reads the old."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

BUNDLE = "tests/tamper/test_bundle_bytes.py::"
DIRECTORY = "tests/tamper/test_directory_bytes.py::"
FILES = "tests/tamper/test_directory_files.py::"
NAMES = "tests/tamper/test_bundle_names.py::"
ROWS = "tests/tamper/test_rows_and_contents.py::"

CHANGED = (
    Mutant(
        "header-not-compared",
        5,
        "The header in front of an entry is not compared with what the container says.",
        "store/bundle/entries.py",
        "if self._source.read(begins - entry.header_size, entry.header_size) != local_header(entry):",
        "if self._source.read(begins - entry.header_size, entry.header_size) == b'':",
        (BUNDLE + "test_no_flipped_byte_goes_unnoticed[whole.skn]",),
    ),
    Mutant(
        "stored-bytes-not-hashed",
        5,
        "The stored bytes of an entry are inflated without a look at their digest: padding passes.",
        "store/bundle/entries.py",
        "if digest.hexdigest() != entry.sha256:",
        "if not entry.sha256:",
        (BUNDLE + "test_no_flipped_byte_goes_unnoticed[whole.skn]",),
    ),
    Mutant(
        "directory-not-compared",
        5,
        "The ZIP's own directory is not compared with the container.",
        "store/bundle/container.py",
        "        if here != expected:",
        "        if len(here) != len(expected):",
        (BUNDLE + "test_no_flipped_byte_goes_unnoticed[shared.skn]",),
    ),
    Mutant(
        "container-in-other-words",
        5,
        "A container may say the same in other bytes.",
        "store/bundle/container.py",
        "    if encode(container) != data:",
        "    if not data:",
        (NAMES + "test_no_container_that_says_the_same_in_other_words_goes_unnoticed",),
    ),
    Mutant(
        "any-order-of-entries",
        5,
        "The entries of a bundle may stand in any order.",
        "store/bundle/verify_packed.py",
        "if place_of(after.name) < place_of(before.name):",
        "if place_of(after.name) == ():",
        (NAMES + "test_no_entry_in_another_place_goes_unnoticed[whole]",),
    ),
    Mutant(
        "snapshot-not-missed",
        5,
        "A snapshot that the rows name may be left out of a bundle.",
        "store/bundle/verify_packed.py",
        "in sorted(self._snapshots.keys() - recording.entries.keys()):",
        "in sorted(recording.entries.keys() - recording.entries.keys()):",
        (NAMES + "test_no_entry_that_is_gone_goes_unnoticed[whole]",),
    ),
    Mutant(
        "media-type-not-compared",
        5,
        "A content may stand in a bundle as of another media type.",
        "store/bundle/verify_packed.py",
        "elif entry.name != resource_name(name, sealed[1]):",
        "elif not entry.name:",
        (NAMES + "test_no_entry_under_another_name_goes_unnoticed[whole]",),
    ),
    Mutant(
        "added-file-allowed",
        5,
        "A file among the contents that was not sealed is not reported.",
        "store/verify.py",
        'yield Problem("added", name, "a file that was not sealed")',
        "pass",
        (FILES + "test_no_added_file_goes_unnoticed",),
    ),
    Mutant(
        "open-json-not-compared",
        5,
        "What says who is recording may say anything.",
        "store/verify.py",
        "is not None and found != bytes_due:",
        "is not None and len(found) != len(bytes_due):",
        (DIRECTORY + "test_no_flipped_byte_goes_unnoticed[whole]",),
    ),
    Mutant(
        "published-result-not-compared",
        5,
        "The published result is not compared where it is a file of its own.",
        "store/verify.py",
        "    target = recording.run_directory / name\n",
        "    target = recording.attempt / layout.RESULT\n",
        (DIRECTORY + "test_no_flipped_byte_goes_unnoticed[copied]",),
    ),
    Mutant(
        "content-by-size",
        5,
        "A content of the right size is believed.",
        "store/blobs.py",
        'if digest.hexdigest() != name:\n        raise Damaged(f"the blob',
        'if not name:\n        raise Damaged(f"the blob',
        (DIRECTORY + "test_no_flipped_byte_goes_unnoticed[whole]",),
    ),
    Mutant(
        "expiry-before-its-deadline",
        5,
        "A record of expiry authorises a removal before the declared deadline.",
        "store/forget/availability.py",
        "    if removal.at < due:",
        "    if removal.at < 0:",
        ("tests/store/test_expire_record.py::test_a_record_chained_anew_authorises_only_what_the_seal_gives",),
    ),
    Mutant(
        "seal-not-compared",
        5,
        "The manifest is believed whatever its seal says.",
        "model/manifest.py",
        'suffix != _SEAL + _digest(before).encode("ascii") + b\'"}\' or line == text:',
        "line == text:",
        (DIRECTORY + "test_no_flipped_byte_goes_unnoticed[whole]",),
    ),
)

LIVE = (
    Mutant(
        "subscriber-gets-the-body",
        6,
        "Who appends is given the row without its hash: other bytes than the log's.",
        "store/log.py",
        "appended = Appended(self.seq, t, h, line)",
        "appended = Appended(self.seq, t, h, body)",
        ("tests/store/test_live.py::test_what_is_given_out_live_is_what_stands_in_the_log",),
    ),
    Mutant(
        "durable-too-far",
        6,
        "A sync vouches for a row that was appended while it was under way.",
        "store/log.py",
        "                self._mark = (covered, h.hex()[:16])",
        "                self._mark = (self.seq + 1, h.hex()[:16])",
        ("tests/store/test_live.py::test_rows_behind_the_last_sync_mark_are_provisional",),
    ),
)

DERIVED = (
    Mutant(
        "derived-file-needed",
        7,
        "A recording without `open.json` is reported as damaged.",
        "store/verify.py",
        "is not None and found != bytes_due:",
        "!= bytes_due:",
        (FILES + "test_no_removed_file_goes_unnoticed[whole]",),
    ),
)

PROVEN = (
    Mutant(
        "proof-of-any-leaf",
        8,
        "A path proves a row whatever root it leads to.",
        "model/merkle.py",
        "return last == 0 and found == root",
        "return last == 0",
        ("tests/store/test_proof.py::test_every_changed_byte_of_a_proof_is_refused",),
    ),
    Mutant(
        "prefix-of-another-log",
        8,
        "A prefix is proven by the whole log's root alone.",
        "model/merkle.py",
        "return last == 0 and before == prefix_root and after == root",
        "return last == 0 and after == root",
        ("tests/model/test_merkle.py::test_a_prefix_s_proof_proves_nothing_else",),
    ),
    Mutant(
        "proof-with-every-hash",
        8,
        "The tree is split in the middle, not at a power of two: other roots, longer paths.",
        "model/merkle.py",
        "return 1 << ((size - 1).bit_length() - 1)",
        "return size - 1",
        ("tests/model/test_merkle.py::test_every_leaf_is_proven_by_the_path_of_the_rfc",),
    ),
    Mutant(
        "proof-of-another-run",
        8,
        "A proof is believed whatever fingerprint it was asked for.",
        "store/proof.py",
        "if fingerprint is not None and fingerprint.lower() != seal:",
        "if fingerprint is not None and not seal:",
        ("tests/store/test_proof.py::test_a_proof_of_a_forged_run_is_told_by_its_fingerprint_alone",),
    ),
)

HIDDEN = (
    Mutant(
        "no-hex",
        9,
        "A secret in upper-case hex is written.",
        "store/secrets/forms.py",
        "    yield digits.upper(), False\n",
        "",
        ("tests/engine/test_vault_forms.py::test_every_encoding_is_found_and_the_text_around_it_stays",),
    ),
    Mutant(
        "one-alignment",
        9,
        "Base64 is looked for at one alignment of three.",
        "store/secrets/forms.py",
        "    for before in range(3):",
        "    for before in range(1):",
        ("tests/engine/test_vault_forms.py::test_inside_base64_of_a_document_at_each_alignment",),
    ),
    Mutant(
        "no-white-space",
        9,
        "A secret of several lines is looked for with its line breaks alone.",
        "store/secrets/forms.py",
        '    texts = {value, "".join(value.split())}\n    found = ',
        "    texts = {value}\n    found = ",
        ("tests/engine/test_vault_forms.py::test_every_encoding_is_found_and_the_text_around_it_stays",),
    ),
    Mutant(
        "no-utf-16",
        9,
        "A secret in UTF-16 is written.",
        "store/secrets/forms.py",
        '    yield text.encode("utf-16-le", "surrogatepass")\n',
        "",
        ("tests/engine/test_vault_forms.py::test_every_encoding_is_found_and_the_text_around_it_stays",),
    ),
    Mutant(
        "no-window",
        9,
        "A stream is looked into piece by piece: a secret that is cut in two is written.",
        "store/secrets/scanner.py",
        "        if not self._words:\n            return len(data)\n        first",
        "        if data:\n            return len(data)\n        first",
        ("tests/engine/test_vault_forms.py::test_any_split_decides_as_the_whole",),
    ),
    Mutant(
        "nothing-assembled",
        9,
        "A secret that a model spells token by token is looked for in the bytes alone.",
        "engine/stream.py",
        "        self._pass(self._assembled.feed(waiting))",
        "        self._pass(waiting)",
        ("tests/engine/test_vault_assembled.py::test_in_a_text_and_in_arguments",),
    ),
)

OLD = (
    Mutant(
        "old-manifest-not-raised",
        10,
        "A manifest of worldline/0 is read as one of worldline/1.",
        "model/upcast.py",
        '{"worldline/0": _manifest_0}',
        "{}",
        ("tests/golden/test_golden.py::test_its_header_and_manifest_read_as_the_newest_format_says",),
    ),
    Mutant(
        "old-header-not-raised",
        10,
        "A header of worldline/0 is read as one of worldline/1.",
        "model/upcast.py",
        '{"worldline/0": _header_0}',
        "{}",
        ("tests/golden/test_old_headers.py::test_a_header_that_says_less_reads_as_the_newest_does",),
    ),
    Mutant(
        "old-container-unknown",
        10,
        "Bundles of the first container format are not opened any more.",
        "store/bundle/container.py",
        '    "worldline-container/0": re.compile(_NAMES_0),\n',
        "",
        ("tests/golden/test_golden.py::test_contexts_are_rebuilt_from_every_one",),
    ),
    Mutant(
        "old-index-unknown",
        10,
        "The index of an old bundle is derived as a new one.",
        "store/bundle/verify_packed.py",
        "IndexBuilder0(given) if isinstance(given, Index0) else IndexBuilder(given.result)",
        "IndexBuilder(given.result)",
        ("tests/golden/test_golden.py::test_every_good_one_is_good",),
    ),
    Mutant(
        "old-format-unknown",
        10,
        "Recordings of worldline/0 are refused as of a format that nobody knows.",
        "model/manifest.py",
        'READABLE = (FORMAT, "worldline/0")',
        "READABLE = (FORMAT,)",
        ("tests/golden/test_golden.py::test_agents_of_today_replay_against_it",),
    ),
)

WHOLE = (
    Mutant(
        "torn-row-stays",
        3,
        "What a crash cut off stays in the log, and the end row is written behind it.",
        "store/reconcile.py",
        "        salvage.cut_tail(attempt, found.damage.offset)\n",
        "        pass\n",
        ("tests/store/test_states.py::test_a_torn_tail_is_kept_and_sealed",),
    ),
)

MUTANTS = (*CHANGED, *LIVE, *DERIVED, *PROVEN, *HIDDEN, *OLD, *WHOLE)
