"""What the panel shows of a study: the newest answer about a run, in the shape that its page reads (`r/<id>/study`)."""

from __future__ import annotations

from typing import Any

from worldline.store.bundle.packed import PackedRecording
from worldline.store.layout import homes
from worldline.store.recording import Recording
from worldline.store.studies.table import about_run


def studied(recording: Recording) -> dict[str, Any] | None:
    """The study of a run: its curve after each step, the certified drops, and a draw that went well; None without one.

    A bundle stands in no store, and a rollout is part of a study and has none of its own.
    """
    if isinstance(recording, PackedRecording) or len(homes(recording.run_directory)) > 1:
        return None
    answer = about_run(recording.run_directory.parent, recording.run_id)
    if answer is None:
        return None
    certified = answer.get("certified") or []
    return {
        "study": answer["study"],
        "verdict": answer["verdict"],
        "sentence": answer["sentence"],
        # The curve is about what is held before a step: for the page, the chance after the step before it.
        "curve": [
            {"i": point["at"] - 1, "v": point["v"], "lo": point["low"], "hi": point["high"]}
            for point in answer.get("curve") or ()
        ],
        "certified": [
            {"step": drop["step"], "drop": drop["drop"], "lo": drop["ci"][0], "hi": drop["ci"][1]} for drop in certified
        ],
        "rescued": _rescued(answer, certified),
    }


def _rescued(answer: dict[str, Any], certified: list[dict[str, Any]]) -> dict[str, Any] | None:
    found = answer.get("rescued") or []
    rescue = next((each for each in found if each.get("run")), None)
    if rescue is None or not certified:
        return None
    before = certified[0]["before"]
    drawn = before["n"] - before.get("undefined", 0)
    return {
        "run": rescue["run"],
        "step": rescue["at"],
        "action": rescue.get("action") or "",
        "rate": before["successes"] / drawn if drawn else 0.0,
    }
