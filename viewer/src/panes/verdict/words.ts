/** The verdict in words: "Failed at step 41 / TimeoutError, / after / a denied http.post at step 40". */
import type { Steps, Verdict } from "../../core/types";
import { stepNumber } from "../../state/numbers";

export interface VerdictPart {
  text: string;
  tone: "main" | "plain" | "joint" | "denied";
  /** Where a click goes. */
  step?: number;
}

export function verdictWords(verdict: Verdict, steps: Pick<Steps, "length" | "name">): VerdictPart[] {
  const { outcome, reason, failedAt, deniedAt } = verdict;
  const parts: VerdictPart[] = [];
  const named = (i: number): string => (i >= 0 && i < steps.length ? steps.name(i) : "");
  if (outcome === "failed") {
    parts.push(
      failedAt >= 0
        ? { text: `Failed at step ${stepNumber(failedAt)}`, tone: "main", step: failedAt }
        : { text: "Failed", tone: "main" },
    );
  } else if (outcome === "succeeded") {
    parts.push({ text: "Succeeded", tone: "main" });
  } else if (outcome === "running") {
    parts.push({ text: "Running", tone: "main" });
  } else if (outcome === "interrupted") {
    parts.push({ text: "Interrupted: it has no end", tone: "main" });
  } else if (outcome === "partial") {
    parts.push({ text: "Partly done", tone: "main" });
  } else {
    parts.push({ text: "No outcome was said", tone: "main" });
  }
  const led = deniedAt >= 0 && (outcome !== "failed" || verdict.openBecause === "denied before failure");
  if (reason !== "") parts.push({ text: led && outcome === "failed" ? `${reason},` : reason, tone: "plain" });
  if (outcome !== "failed" && failedAt >= 0)
    parts.push({ text: `step ${stepNumber(failedAt)} failed`, tone: "plain", step: failedAt });
  if (deniedAt >= 0) {
    parts.push({ text: outcome === "failed" && led ? "after" : "·", tone: "joint" });
    const what = named(deniedAt);
    parts.push({
      text: `a denied ${what === "" ? "request" : what} at step ${stepNumber(deniedAt)}`,
      tone: "denied",
      step: deniedAt,
    });
  }
  return parts;
}

/** The same as one sentence: for the page's title and for who cannot see the line. */
export function verdictSentence(verdict: Verdict, steps: Pick<Steps, "length" | "name">): string {
  return verdictWords(verdict, steps)
    .map((part) => part.text)
    .join(" ")
    .replace(" ·", ";");
}
