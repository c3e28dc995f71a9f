/** What the top bar and the integrity tab say of a log whose rows were not fetched for their chain, and what one press does. */
// @vitest-environment happy-dom
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { render } from "preact";
import { afterEach, describe, expect, it, vi } from "vitest";
import { IntegrityTab } from "../../src/panes/inspector/integrity";
import { TopBar } from "../../src/panes/shell/top-bar";
import { page, run, tab, version } from "../../src/state/app";
import { openRun } from "../../src/state/open";

const BUNDLE = resolve(import.meta.dirname, "../../../tests/golden/v1/complete.skn");
const made: HTMLElement[] = [];

function drawn(what: Parameters<typeof render>[0]): HTMLElement {
  const box = document.createElement("div");
  document.body.append(box);
  made.push(box);
  render(what, box);
  return box;
}

afterEach(() => {
  for (const box of made.splice(0)) {
    render(null, box);
    box.remove();
  }
  run.value = null;
  page.value = "empty";
});

describe("rows that were not checked", () => {
  it("are said to be so in the top bar, where one press checks everything", async () => {
    await openRun([{ file: new File([readFileSync(BUNDLE)], "complete.skn") }]);
    const open = run.value!;
    await vi.waitFor(() => expect(open.integrity.verdict).toBe("sealed"), { timeout: 20_000 });
    const bar = drawn(<TopBar />),
      said = (): string => bar.querySelector(".facts")?.textContent ?? "";
    const press = (): HTMLButtonElement | null => bar.querySelector("[aria-label='Check everything']");
    await vi.waitFor(() => expect(said()).toContain("sealed"));
    expect(press()).toBeNull();
    // As a server's run of more rows than are fetched twice is left.
    Object.assign(open.integrity, { verdict: "unread", left: ["the rows"] });
    version.value++;
    await vi.waitFor(() => expect(said()).toContain("rows not checked"));
    expect(said()).not.toMatch(/checking|sealed/);
    const details = drawn(<IntegrityTab open={open} />);
    expect(details.textContent).toContain("Not looked at: the rows");
    bar.querySelector<HTMLButtonElement>(".facts .seal")?.click();
    expect(tab.value).toBe("integrity");
    press()?.click();
    await vi.waitFor(() => expect(said()).toContain("sealed"), { timeout: 20_000 });
    expect([open.integrity.verdict, open.integrity.left]).toEqual(["sealed", undefined]);
    expect(press()).toBeNull();
  });
});

describe("what a seal does not say", () => {
  it("names the masks of a run, and that one which failed open may have gone on", async () => {
    await openRun([{ file: new File([readFileSync(BUNDLE)], "complete.skn") }]);
    const open = run.value!;
    const said = (data: object, manifest: object): string => {
      const { recording } = open;
      const header = { ...recording.header, data: { ...recording.header.data, ...data } };
      const changed = { ...recording, kind: recording.kind, header, manifest: { ...recording.manifest, ...manifest } };
      return drawn(<IntegrityTab open={{ ...open, recording: changed as unknown as typeof recording }} />).textContent;
    };
    const late = { sealed_by: "worldline 1 reconcile" };
    expect(said({}, {})).not.toMatch(/masks leave out|fail-open/);
    expect(said({ masks: ["$.now", "$.id"] }, {})).toContain("masks leave out: $.now, $.id");
    expect(said({ fail_open: true }, {})).not.toContain("fail-open");
    expect(said({}, late)).not.toContain("fail-open");
    expect(said({ fail_open: true }, late)).toContain("the agent may have acted, on no record");
  });
});
