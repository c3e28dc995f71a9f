"""Faults in the order in which files are written, synced, named and removed: only a crash shows them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LOSS = "tests/crash/test_power_loss.py::"
ROWS = f"{LOSS}test_a_recording_that_loses_power[rows and rotation]"
KILL = f"{LOSS}test_a_kill_and_then_a_power_loss[reconciling behind a kill]"
NEXT = f"{LOSS}test_a_kill_and_then_a_power_loss[recording behind a kill]"
PARTIAL = f"{LOSS}test_a_kill_and_then_a_power_loss[reconciling a partial one behind a kill]"
UNLINKED = f"{LOSS}test_a_recording_that_loses_power[no hard links]"
EXPIRY = f"{LOSS}test_an_expiry_that_loses_power"
CONTAINMENT = f"{LOSS}test_a_containment_that_loses_power"

MUTANTS = (
    Mutant(
        "no-fdatasync",
        promise=1,
        breaks="A durable append returns without having synced the log.",
        file="store/layout.py",
        old="        os.fdatasync(descriptor)",
        new="        pass",
        tests=(ROWS,),
    ),
    Mutant(
        "no-fsync-of-new-files",
        promise=4,
        breaks="A file gets its name before its bytes are on the disk: result, manifest, key.",
        file="store/layout.py",
        old="            write_all(descriptor, data)\n            os.fsync(descriptor)\n",
        new="            write_all(descriptor, data)\n",
        tests=(ROWS,),
    ),
    Mutant(
        "no-fsync-of-contents",
        promise=1,
        breaks="A content gets its name, and a row that refers to it, before its bytes are on the disk.",
        file="store/blobs.py",
        old="            os.fsync(descriptor)\n",
        new="",
        tests=(ROWS,),
    ),
    Mutant(
        "content-without-directory-sync",
        promise=1,
        breaks="The name of a content is not durable when the row that refers to it is.",
        file="store/blobs.py",
        old="        layout.sync_directory(path.parent)\n        self.bytes",
        new="        self.bytes",
        tests=(ROWS,),
    ),
    Mutant(
        "content-behind-its-row",
        promise=1,
        breaks="The row that names a content is written before the content.",
        file="engine/recorder.py",
        old='            appended = self.log.append(kind, src, names.pop("lane"), names, self._encode(fields))\n',
        new=(
            "            kept, folder = self.keep.blobs, Path(__import__('tempfile').mkdtemp())\n"
            "            self.keep.blobs = BlobStore(folder, kept.tier_key)\n"
            "            encoded = self._encode(fields)\n"
            '            appended = self.log.append(kind, src, names.pop("lane"), names, encoded)\n'
            "            self.keep.blobs = kept\n"
            "            self._encode(fields)\n"
            "            shutil.rmtree(folder)\n"
        ),
        tests=(ROWS,),
    ),
    Mutant(
        "publish-before-the-staged-manifest",
        promise=4,
        breaks="The result is published before there is a manifest that could vouch for it.",
        file="store/seal.py",
        old=(
            "    layout.write_durable(attempt / layout.STAGED, manifests.seal(Manifest(**facts)))\n"
            "    target = _commit(attempt, name, encoded, mode) if publishes else None\n"
        ),
        new=(
            "    target = _commit(attempt, name, encoded, mode) if publishes else None\n"
            "    layout.write_durable(attempt / layout.STAGED, manifests.seal(Manifest(**facts)))\n"
        ),
        tests=(ROWS,),
    ),
    Mutant(
        "no-directory-sync-behind-the-commit-point",
        promise=4,
        breaks="Who records is told that the result is published before its name is durable.",
        file="store/seal.py",
        old="            layout.sync_directory(run)\n",
        new="",
        tests=(ROWS,),
    ),
    Mutant(
        "no-sync-of-the-attempts-directory",
        promise=1,
        breaks="The attempt's own name is not durable when its rows are.",
        file="store/layout.py",
        old="        sync_directory(path.parent)\n",
        new="        if path.parent.name != ATTEMPTS.name:\n            sync_directory(path.parent)\n",
        tests=(ROWS,),
    ),
    Mutant(
        "torn-last-line-only",
        promise=3,
        breaks="Only a cut last line counts as what a crash leaves: not a hole before rows that were never synced.",
        file="store/salvage.py",
        old='return b"\\0" in line or line[-1:] != b"\\n"',
        new='return line[-1:] != b"\\n"',
        tests=(ROWS, "tests/store/test_states.py::test_a_torn_tail_is_kept_and_sealed"),
    ),
    Mutant(
        "rotation-without-directory-sync",
        promise=1,
        breaks="A chunk takes the tail's place without a sync of the directories that it moves between.",
        file="store/log.py",
        old="        layout.sync_directory(chunk.parent)\n        layout.sync_directory(self._attempt)\n",
        new="",
        tests=(ROWS,),
    ),
    Mutant(
        "expiry-removes-first",
        promise=3,
        breaks="Contents are removed before the records that authorise it are on the disk.",
        file="store/forget/retention.py",
        old=(
            "            _record(recording, stored, expiry, "
            "[c for c in found.due if c.name not in expiry.removals], now_ns)\n"
            "            _remove(recording, stored, [*found.expired, *found.due])\n"
        ),
        new=(
            "            _remove(recording, stored, [*found.expired, *found.due])\n"
            "            _record(recording, stored, expiry, "
            "[c for c in found.due if c.name not in expiry.removals], now_ns)\n"
        ),
        tests=(EXPIRY,),
    ),
    Mutant(
        "expiry-hole-is-a-forgery",
        promise=3,
        breaks="A hole that a crash leaves in the records of an expiry counts as a forged record.",
        file="store/forget/availability.py",
        old='        if not line.endswith(b"\\n") or b"\\0" in line:',
        new='        if not line.endswith(b"\\n"):',
        tests=(EXPIRY,),
    ),
    Mutant(
        "pool-without-sync",
        promise=3,
        breaks="What was told as removed comes back in the store's pool.",
        file="store/blobs.py",
        old="        if folder.is_dir():\n            layout.sync_directory(folder)\n",
        new="        pass\n",
        tests=(EXPIRY, CONTAINMENT),
    ),
    Mutant(
        "reconcile-trusts-the-dead",
        promise=3,
        breaks="Reconciling builds on what a killed writer had not synced.",
        file="store/reconcile.py",
        old="    salvage.make_durable(recording.attempt)\n",
        new="",
        tests=(KILL,),
    ),
    Mutant(
        "directories-of-others-are-durable",
        promise=1,
        breaks="A recorder believes that the store's directory, which a killed one made, is durable.",
        file="store/layout.py",
        old="    if shared:\n",
        new="    if shared and not directory:\n",
        tests=(NEXT,),
    ),
    Mutant(
        "partial-seal-without-sync",
        promise=3,
        breaks="Reconciling names the fingerprint of a partial attempt whose manifest is not durable.",
        file="store/reconcile.py",
        old="        layout.sync_directory(attempt)  # whoever",
        new="        # whoever",
        tests=(PARTIAL,),
    ),
    Mutant(
        "moved-without-sync-of-where-from",
        promise=1,
        breaks="Without hard links a content's move out of its temporary place is not durable when its row is.",
        file="store/layout.py",
        old="        if temporary.parent != path.parent:",
        new="        if not path.parent:",
        tests=(UNLINKED,),
    ),
    Mutant(
        "containment-moves-first",
        promise=3,
        breaks="An attempt is moved away before the record of its containment is on the disk.",
        file="store/forget/contain.py",
        old="            quarantine.register(run, records)  #",
        new="            held.callback(quarantine.register, run, records)  #",
        tests=(CONTAINMENT,),
    ),
)
