/**
 * Two runs side by side: their heads, the first divergence pinned, the spine of aligned steps, and the pair under the
 * playhead in full. One playhead moves both.
 */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import "../../style/compare.css";
import { other, outline, run, version, type Open } from "../../state/app";
import { runId } from "../../state/link";
import { closeOther, openRun } from "../../state/open";
import { grouped, plural } from "../../state/words";
import { Icon } from "../icons";
import { verdictSentence } from "../verdict/words";
import { Pair } from "./pair";
import { LOOK, SpineList } from "./rows";
import type { RelationCode } from "./spine";
import { foldSame, goToRow, row, spine, spineTrouble, toDifference, watchRuns } from "./state";
import { stepNumber } from "../../state/numbers";

export function Compare(): JSX.Element {
  useEffect(watchRuns, []);
  void version.value;
  const left = run.value,
    right = other.value;
  if (left === null || right === null) {
    return (
      <section class="compare pane" aria-label="Compare">
        <p class="empty-line">Open a second run to compare with.</p>
      </section>
    );
  }
  return (
    <section class="compare pane" aria-label="Compare">
      <header class="compare-heads">
        <Head open={left} side="left" />
        <Tools />
        <Head open={right} side="right" />
      </header>
      <First />
      {spineTrouble.value !== "" ? (
        <p class="empty-line is-failed" role="alert">
          The runs could not be aligned: {spineTrouble.value}
        </p>
      ) : null}
      {spine.value === null ? (
        <p class="empty-line">{spineTrouble.value === "" ? "aligning the steps …" : ""}</p>
      ) : (
        <SpineList />
      )}
      <Pair />
    </section>
  );
}

function Head({ open, side }: { open: Open; side: "left" | "right" }): JSX.Element {
  const id = runId(open.recording.header.data);
  const { verdict, outline: own } = open;
  const look = verdict.outcome === "failed" ? "is-failed" : verdict.outcome === "succeeded" ? "is-ok" : "muted";
  return (
    <div class={`head ${side}`}>
      <b class="clip" title={open.recording.label}>
        {open.recording.label}
      </b>{" "}
      <span class="muted mono">{id.slice(-4)}</span>
      <span class={`clip ${look}`}>
        <Icon name={verdict.outcome === "failed" ? "cross" : verdict.outcome === "succeeded" ? "tick" : "question"} />{" "}
        {verdictSentence(verdict, own.steps)}
      </span>
      <span class="muted">{plural(own.steps.length, "step")}</span>
      {side === "right" ? (
        <button type="button" class="button plain square small" aria-label="Close the right run" onClick={closeOther}>
          <Icon name="close" />
        </button>
      ) : null}
    </div>
  );
}

function Tools(): JSX.Element {
  const now = spine.value;
  const left = run.value,
    right = other.value;
  const swap = left !== null && right !== null && left.server !== null && right.server !== null;
  return (
    <div class="compare-tools" role="toolbar" aria-label="Differences">
      <button type="button" class="button small square" aria-label="Difference before" onClick={() => toDifference(-1)}>
        <Icon name="previous" />
      </button>
      <button type="button" class="button small square" aria-label="Next difference" onClick={() => toDifference(1)}>
        <Icon name="next" />
      </button>
      <button
        type="button"
        class="button small"
        aria-pressed={foldSame.value}
        title="Long stretches of equal steps take one line"
        onClick={() => (foldSame.value = !foldSame.value)}
      >
        fold same
      </button>
      {swap ? (
        <button
          type="button"
          class="button small square"
          aria-label="Swap the sides"
          title="Swap the sides"
          onClick={() => void openRun([{ served: idOf(right) }, { served: idOf(left) }])}
        >
          <Icon name="compare" />
        </button>
      ) : null}
      {now === null ? null : (
        <span class="counts muted">
          {([0, 1, 2, 3] as RelationCode[])
            .filter((code) => now.counts[code] > 0)
            .map((code) => (
              <span key={code} class={LOOK[code].class} title={LOOK[code].word}>
                <b aria-hidden="true">{LOOK[code].sign}</b> {grouped(now.counts[code])}
                <span class="unseen"> {LOOK[code].word}</span>
              </span>
            ))}
        </span>
      )}
    </div>
  );
}

/** The first divergence stays in sight, wherever the list is. */
function First(): JSX.Element | null {
  const now = spine.value;
  const left = outline.value,
    right = other.value?.outline;
  if (now === null || left === null || !right) return null;
  if (now.first < 0) {
    return now.length === 0 ? null : (
      <p class="first-bar same">
        <Icon name="tick" /> No step differs, ids and dates aside. Screens, prompts and results may: look at the pair.
      </p>
    );
  }
  const a = now.left[now.first] ?? -1,
    b = now.right[now.first] ?? -1;
  const word = LOOK[(now.relation[now.first] ?? 1) as RelationCode].word;
  return (
    <button
      type="button"
      class="first-bar"
      aria-current={row.value === now.first ? "true" : undefined}
      onClick={() => goToRow(now.first)}
    >
      <Icon name="fork" /> <b>First divergence</b>
      <span class="clip">
        {a >= 0 ? (
          <>
            left step {stepNumber(a, left)} <code>{left.steps.name(a)}</code>
          </>
        ) : (
          "no step left"
        )}{" "}
        ·{" "}
        {b >= 0 ? (
          <>
            right step {stepNumber(b, right)} <code>{right.steps.name(b)}</code>
          </>
        ) : (
          "no step right"
        )}{" "}
        · {word}
      </span>
    </button>
  );
}

function idOf(open: Open): string {
  return runId(open.recording.header.data);
}
