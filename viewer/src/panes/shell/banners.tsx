/** What must be known before anything on the page is believed: one line each, with what to do. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { liveState, run, tab, version, type Open } from "../../state/app";
import { Icon, type IconName } from "../icons";

export interface Banner {
  key: string;
  tone: "fail" | "warn" | "plain";
  icon: IconName;
  text: string;
  /** A command for the terminal. */
  command?: string;
  details?: boolean;
}

const closed = signal<readonly string[]>([]);

export function Banners(): JSX.Element {
  void version.value;
  const open = run.value;
  const all = open === null ? [] : banners(open, liveState.value).filter(({ key }) => !closed.value.includes(key));
  return (
    <div class="banners" role="status" aria-live="polite">
      {all.map((banner) => (
        <div key={banner.key} class={`banner ${banner.tone}`} data-testid={`banner-${banner.key}`}>
          <Icon name={banner.icon} />
          <span>
            {banner.text} {banner.command ? <code>{banner.command}</code> : null}
          </span>
          <span class="spacer" />
          {banner.details ? (
            <button type="button" class="button small" onClick={() => (tab.value = "integrity")}>
              details
            </button>
          ) : null}
          <button
            type="button"
            class="button plain square small"
            aria-label="Close this message"
            onClick={() => (closed.value = [...closed.value, banner.key])}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}

export function banners(open: Open, live: "off" | "live" | "stalled" | "ended"): Banner[] {
  const { integrity, recording } = open;
  const found: Banner[] = [];
  const first = integrity.problems[0];
  const where =
    first === undefined
      ? ""
      : [first.seq === undefined ? "" : `row ${first.seq}`, first.offset === undefined ? "" : `byte ${first.offset}`]
          .filter((word) => word !== "")
          .join(", ");
  if (integrity.verdict === "changed") {
    found.push({
      key: "changed",
      tone: "fail",
      icon: "sealBroken",
      details: true,
      text: `This is not what was sealed: ${first?.what ?? "its content does not fit its seal"}${where === "" ? "" : ` (${where})`}. Do not rely on what you see.`,
    });
  }
  if (integrity.verdict === "truncated") {
    found.push({
      key: "truncated",
      tone: "warn",
      icon: "loss",
      details: true,
      text: `The file ends too early. What can be read is shown${where === "" ? "" : `, up to ${where}`}. Complete it with`,
      command: "worldline reconcile",
    });
  }
  if (integrity.verdict === "newer") {
    found.push({
      key: "newer",
      tone: "warn",
      icon: "warning",
      details: true,
      text: "A newer version of Worldline wrote this. What this page understands is shown; the rest is left out.",
    });
  }
  if (integrity.verdict === "unsealed" && recording.kind !== "live") {
    found.push({
      key: "unsealed",
      tone: "warn",
      icon: "sealNone",
      details: true,
      text: "This recording was never sealed: its writer died, or still runs. Seal what there is with",
      command: "worldline reconcile",
    });
  }
  if (live === "stalled") {
    found.push({
      key: "stalled",
      tone: "warn",
      icon: "warning",
      text: "Nothing has come from this run for a while. Its process may hang, or have died without a word.",
    });
  }
  const expired = integrity.expired ?? 0;
  if (expired > 0) {
    found.push({
      key: "expired",
      tone: "plain",
      icon: "loss",
      text: `${expired} ${expired === 1 ? "content has" : "contents have"} expired and ${expired === 1 ? "was" : "were"} deleted on purpose. The log is whole; what is gone is hatched.`,
    });
  }
  return found;
}
