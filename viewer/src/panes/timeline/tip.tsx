/** The tooltip of the timeline: what lies under the pointer, in words. */
import type { JSX } from "preact";
import { Mark, type MarkCode, type Outline } from "../../core/types";
import { outline } from "../../state/app";
import { masked } from "../../state/mask";
import { stepNumber } from "../../state/numbers";
import { clock, duration, grouped, plural } from "../../state/words";
import { STATUS } from "../icons";
import type { Hit } from "./hit";
import { noteList } from "./picture";
import { Tone } from "./tracks";

export function Tooltip({ hovered }: { hovered: { found: Hit; x: number; y: number } | null }): JSX.Element | null {
  const now = outline.value;
  if (hovered === null || now === null) return null;
  const { title, lines } = describe(hovered.found, now, noteList.value);
  const right = hovered.x > innerWidth - 340;
  return (
    <div
      class={`tl-tip${right ? " right" : ""}${hovered.y > 120 ? " above" : ""}`}
      role="tooltip"
      style={{ left: `${hovered.x}px`, top: `${hovered.y}px` }}
    >
      <b>{title}</b>
      {lines
        .filter((line) => line !== "")
        .map((line) => (
          <span key={line}>{line}</span>
        ))}
    </div>
  );
}

/** The tooltip: a line in bold and lines below it. */
export function describe(
  found: Hit,
  outline: Outline,
  notes: readonly { seq: number; text: string }[],
): { title: string; lines: string[] } {
  const { steps, spans, marks } = outline;
  switch (found.what) {
    case "step": {
      if (found.count > 1) return several(found, "steps");
      return {
        title: `step ${stepNumber(found.id, outline)} · ${steps.name(found.id)}`,
        lines: [
          `${STATUS[steps.status(found.id)].word} · ${duration(found.t1 - found.t0)} · at ${clock(found.t0)}`,
          `model ${duration(steps.think(found.id))} · tools ${duration(steps.tool(found.id))} · environment ${duration(steps.environment(found.id))}`,
        ],
      };
    }
    case "span": {
      if (found.count > 1)
        return several(
          found,
          `${{ tool: "tool call", decision: "model call", network: "request" }[spans.track(found.id)]}s`,
        );
      const code = spans.code(found.id);
      return {
        title: spans.name(found.id) || spans.track(found.id),
        lines: [
          `${code > 0 ? `${code} · ` : ""}${STATUS[spans.status(found.id)].word} · ${duration(found.t1 - found.t0)} · at ${clock(found.t0)}`,
          stepWords(spans.step(found.id)),
        ],
      };
    }
    case "mark": {
      const hidden = isBody(marks.mark(found.id)) && masked("field", marks.seq(found.id));
      const name = hidden ? "" : marks.name(found.id);
      return {
        title: `${found.word}${found.count > 1 ? ` × ${grouped(found.count)}` : ""}${name === "" ? "" : `: ${name}`}`,
        lines: [`at ${clock(found.t)}`, stepWords(marks.step(found.id)), ...(hidden ? ["its text is masked"] : [])],
      };
    }
    case "loop":
      return {
        title: `loop: ${steps.name(found.id)}`,
        lines: [
          `the same action as in the steps before, ${plural(found.count + 2, "time")} at least`,
          stepWords(found.id),
        ],
      };
    case "note":
      return {
        title: found.count > 1 ? plural(found.count, "note") : "note",
        lines: [notes[found.id]?.text.slice(0, 200) ?? "", `at ${clock(found.t)}`],
      };
    case "gap":
      return {
        title: `${duration(found.to - found.from)} in which nothing happened`,
        lines: [`${clock(found.from, 0)} to ${clock(found.to, 0)}`, found.open ? "click to fold" : "click to open"],
      };
    case "drop":
      return {
        title: `step ${stepNumber(found.step, outline)} cost ${found.drop.toFixed(2)} of the chance to succeed`,
        lines: [`between ${found.lo.toFixed(2)} and ${found.hi.toFixed(2)}`, "click for what would have gone well"],
      };
  }
}

function several(
  found: { count: number; worst: number; tone: number; t0: number },
  what: string,
): { title: string; lines: string[] } {
  const word =
    found.tone === Tone.failed
      ? "failed"
      : found.tone === Tone.denied
        ? "denied"
        : found.tone === Tone.refused
          ? "refused (4xx)"
          : "";
  return {
    title: `${grouped(found.count)} ${what}`,
    lines: [
      ...(word === "" ? [] : [`${grouped(found.worst)} ${word}; a click goes to the first of them`]),
      `from ${clock(found.t0)} · zoom in to tell them apart`,
    ],
  };
}

function stepWords(step: number): string {
  return step < 0 ? "before the first step" : `step ${stepNumber(step)}`;
}

/** Marks whose name is what came back from the world. */
function isBody(mark: MarkCode): boolean {
  return mark === Mark.console || mark === Mark.network || mark === Mark.observation;
}
