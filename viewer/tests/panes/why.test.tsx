/** What a study found is said once, with the numbers that people give to steps. */
// @vitest-environment happy-dom
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { render } from "preact";
import { afterEach, describe, expect, it, vi } from "vitest";
import { WhyCard } from "../../src/panes/inspector/why";
import { readStudy, study } from "../../src/panes/timeline/study";
import { page, run } from "../../src/state/app";
import { openRun } from "../../src/state/open";

const BUNDLE = resolve(import.meta.dirname, "../../../tests/golden/v1/complete.skn");
const ANSWER = {
  curve: [{ i: 3, v: 0.4, lo: 0.2, hi: 0.6 }],
  certified: [{ step: 4, drop: 0.34, lo: 0.14, hi: 0.54 }],
  verdict: "decisive",
  sentence: "Step 4 cost 0.34 of the chance to succeed.",
  rescued: { action: "refund(order=812, cents=4900)" },
};

afterEach(() => {
  study.value = null;
  run.value = null;
  page.value = "empty";
});

describe("the card of a measured cause", () => {
  it("names the step of a branch as `worldline show` does, and its verdict once", async () => {
    await openRun([{ file: new File([readFileSync(BUNDLE)], "complete.skn") }]);
    const open = run.value!;
    // What checks it loads its own code meanwhile: no test ends before that is there.
    await vi.waitFor(() => expect(open.integrity.verdict).toBe("sealed"), { timeout: 20_000 });
    Object.assign(open.outline, { base: 3 });
    study.value = readStudy(ANSWER, 3);
    const box = document.createElement("div");
    render(<WhyCard step={1} open={open} />, box);
    expect(box.textContent).toContain("Step 4 cost 0.34 of the chance to succeed [0.14, 0.54] · decisive");
    expect(box.textContent?.match(/decisive/g)).toHaveLength(1);
    expect(box.textContent).toContain("refund(order=812, cents=4900)");
    render(<WhyCard step={2} open={open} />, box);
    expect(box.textContent).not.toContain("Step 4");
    render(null, box);
  });
});
