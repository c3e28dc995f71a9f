"""Faults in how failing disks, lost power, forks, rivals and clocks are met: the tests of real faults show them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FAILS = "tests/faults/test_disk_fails.py::test_every_failing_system_call_is_one_clear_error"
POWER = "tests/faults/test_power_loss.py::test_power_lost_at_every_change_of_a_recording"
SIZES = "tests/faults/test_full_disk.py::test_disks_of_every_size_that_is_too_small[size-4096]"
FORK = "tests/faults/test_crowd.py::test_a_fork_in_the_middle_of_a_recording"

OPEN = "tests/faults/test_fail_open.py::"
GOES_ON = f"{OPEN}test_wherever_the_disk_fails_the_agent_goes_on_and_the_record_is_good_so_far"
NOT_AGAIN = f"{OPEN}test_a_command_ends_by_itself_on_a_full_disk_and_is_not_done_again_by_a_resume"

MUTANTS = (
    Mutant(
        "fails-open-at-the-start-only",
        promise=1,
        breaks="A call that began on record takes its agent down when its end can't be written.",
        file="engine/fail_open.py",
        old="        except GONE as error:\n            self._inner = None\n",
        new="        except ZeroDivisionError as error:\n            self._inner = None\n",
        tests=(f"{GOES_ON}[28]",),
    ),
    Mutant(
        "failed-open-counts-as-sealed",
        promise=1,
        breaks="A run that went on behind the end of its record looks as if nothing had happened there.",
        file="engine/recorder.py",
        old='**({"fail_open": True} if spec.fail_open else {}),',
        new="",
        tests=(f"{GOES_ON}[5]", NOT_AGAIN),
    ),
    Mutant(
        "a-denial-gives-way-to-the-default",
        promise=2,
        breaks="Who denied a request finds it granted, because the answer found no room on the disk.",
        file="engine/fail_open.py",
        old="if not isinstance(error, GONE):",
        new="if True:",
        tests=(f"{OPEN}test_an_answer_counts_whether_it_can_be_written_or_not",),
    ),
    Mutant(
        "what-nobody-recorded-did-not-happen",
        promise=2,
        breaks="A resume makes the calls again that a run made behind the end of its record.",
        file="engine/gate.py",
        old="return UNRECORDED if self._unrecorded and (self._resumed or declared is not None) else None",
        new="return None",
        tests=(NOT_AGAIN,),
    ),
    Mutant(
        "sync-tried-again",
        promise=1,
        breaks="A sync that failed is tried again, and believed: what it lost is acknowledged.",
        file="store/log.py",
        old="            with self.fatal():\n                layout.sync(descriptor)\n",
        new=(
            "            with self.fatal():\n                try:\n                    layout.sync(descriptor)\n"
            "                except OSError:\n                    layout.sync(descriptor)\n"
        ),
        tests=(f"{FAILS}[EIO]",),
    ),
    Mutant(
        "full-disk-swallowed",
        promise=1,
        breaks="A row that found no room on the disk counts as written.",
        file="store/log.py",
        old="            except OSError as error:\n                self._fail(error)\n",
        new=(
            "            except OSError as error:\n"
            "                if error.errno != 28:\n"
            "                    self._fail(error)\n"
        ),
        tests=(f"{FAILS}[ENOSPC]", SIZES),
    ),
    Mutant(
        "writer-outlives-its-failure",
        promise=1,
        breaks="A writer that failed once goes on as if nothing had been.",
        file="store/log.py",
        old="        if self.failure is not None:\n            raise self.failure\n",
        new="        self.failure = None\n",
        tests=(f"{FAILS}[EIO]",),
    ),
    Mutant(
        "short-write-left-short",
        promise=1,
        breaks="What the system took of a row at once counts as all of it.",
        file="store/layout.py",
        old="        while written < len(view):\n",
        new="        while written > len(view):\n",
        tests=("tests/faults/test_disk_fails.py::test_a_file_that_may_grow_no_further",),
    ),
    Mutant(
        "failed-content-swallowed",
        promise=1,
        breaks="A content whose sync failed is referred to as if it stood on the disk.",
        file="store/blobs.py",
        old="            os.fsync(descriptor)\n",
        new="            with suppress(OSError):\n                os.fsync(descriptor)\n",
        tests=(f"{FAILS}[EIO]",),
    ),
    Mutant(
        "failed-directory-swallowed",
        promise=4,
        breaks="A directory whose sync failed counts as synced, that of the published result too.",
        file="store/layout.py",
        old="        os.fsync(descriptor)\n    finally:\n        os.close(descriptor)\n",
        new=(
            "        try:\n            os.fsync(descriptor)\n        except OSError:\n            return\n"
            "    finally:\n        os.close(descriptor)\n"
        ),
        tests=(f"{FAILS}[EIO]",),
    ),
    Mutant(
        "failed-link-taken-for-none",
        promise=4,
        breaks="A link that the disk refused is replaced by a rename, which the next failure may leave half done.",
        file="store/layout.py",
        old="NO_LINKS = (errno.EPERM,",
        new="NO_LINKS = (errno.EIO, errno.EPERM,",
        tests=(f"{FAILS}[EIO]",),
    ),
    Mutant(
        "start-not-durable",
        promise=2,
        breaks="A call leaves before its start is durable.",
        file="engine/boundary.py",
        old="durable=True, request=request",
        new="durable=False, request=request",
        tests=(POWER,),  # in a crowd another thread may have synced it
    ),
    Mutant(
        "finish-not-durable",
        promise=1,
        breaks="The end of a call with effects is acknowledged before it is durable.",
        file="engine/boundary.py",
        old="        durable = self._call.effect == Effect.SIDE_EFFECTING\n",
        new="        durable = False\n",
        tests=(POWER,),
    ),
    Mutant(
        "temporary-names-come-back",
        promise=4,
        breaks="The seal is made before the temporary names of contents are gone for good.",
        file="store/seal.py",
        old=(
            "        if (folder := attempt / layout.BLOBS / tier).is_dir():\n"
            "            layout.sync_directory(folder)\n"
        ),
        new="        del tier\n",
        tests=(POWER,),
    ),
    Mutant(
        "expiry-record-not-durable",
        promise=5,
        breaks="A content is removed while the record of its removal may still be lost.",
        file="store/forget/chained.py",
        old=(
            "        os.fsync(descriptor)\n"
            "    finally:\n"
            "        os.close(descriptor)\n"
            "    layout.sync_directory(path.parent)\n"
        ),
        new="    finally:\n        os.close(descriptor)\n",
        tests=("tests/faults/test_power_loss.py::test_power_lost_while_contents_expire",),
    ),
    Mutant(
        "lock-kept-in-forked-child",
        promise=3,
        breaks="A forked child keeps its dead parent's lock: the run counts as alive, and nobody can reconcile it.",
        file="store/log.py",
        old="            self._closed = True\n            os.close(self._lock_file)\n            if self._tail >= 0:\n",
        new="            self._closed = True\n            if self._tail >= 0:\n",
        tests=(f"{FORK}[parent]", "tests/store/test_log.py::test_a_forked_child_cannot_append_and_keeps_no_lock"),
    ),
    Mutant(
        "forked-child-writes-itself",
        promise=2,
        breaks="A forked child uses its parent's writer instead of asking the parent.",
        file="seams/active.py",
        old="        if os.getpid() != self._pid:\n",
        new="        if os.getpid() == 0:\n",
        tests=(f"{FORK}[child]",),
    ),
    Mutant(
        "lock-shared-by-writers",
        promise=4,
        breaks="Two processes may write one attempt.",
        file="store/log.py",
        old="fcntl.LOCK_EX | fcntl.LOCK_NB",
        new="fcntl.LOCK_SH | fcntl.LOCK_NB",
        tests=("tests/store/test_log.py::test_a_second_writer_is_refused_and_told_who",),
    ),
    Mutant(
        "second-result-overwrites",
        promise=4,
        breaks="An attempt publishes over the result of another.",
        file="store/seal.py",
        old="        if taken := result_out(run):\n",
        new="        (run / name).unlink(missing_ok=True)\n        if taken := None:\n",
        tests=("tests/faults/test_two_writers.py::test_of_many_attempts_that_publish_at_once_one_does",),
    ),
    Mutant(
        "rows-behind-the-end",
        promise=4,
        breaks="A thread that goes on while its run is sealed appends behind the end row.",
        file="engine/recorder.py",
        old='            self._ended = kind == "meta" and src == "end"\n',
        new="            self._ended = False\n",
        tests=("tests/faults/test_crowd.py::test_a_run_that_is_sealed_while_its_threads_go_on",),
    ),
    Mutant(
        "clock-row-behind-the-end",
        promise=4,
        breaks="A clock that stepped during the last call is said behind the end row.",
        file="engine/recorder.py",
        old=(
            "            if not self._ending:  # nothing stands behind the end row\n"
            "                self._watch_clock()\n"
        ),
        new="            self._watch_clock()\n",
        tests=("tests/faults/test_clocks.py::test_clocks_that_jump_between_any_two_looks_at_them",),
    ),
    Mutant(
        "newest-by-the-wall-clock",
        promise=3,
        breaks="After the wall clock stepped back the older attempt of a run passes for the newest.",
        file="model/ids.py",
        old="    if identifier > earlier:\n",
        new="    if identifier:\n",
        tests=(
            "tests/faults/test_clocks.py::test_the_newest_attempt_is_the_last_that_was_begun_whatever_the_wall_clock_says",
        ),
    ),
    Mutant(
        "written-beside-a-dead-log",
        promise=3,
        breaks="A content is put on a disk that failed, beside a log that takes no row any more.",
        file="store/log.py",
        old="        if self._writer.failure is not None:\n            raise self._writer.failure\n",
        new="        return None\n",
        tests=("tests/faults/test_disk_fails.py::test_beside_a_log_that_failed_nothing_is_written",),
    ),
)
