/**
 * Checking a record behind the first screen: in a worker where there is one. The verdict is sealed or changed only at the end.
 */
import type { Word } from "./crew";
import { FETCHED, type Checking, type Depth } from "./integrity";
import { order } from "./reach";
import type { BundleRecording } from "./recording-bundle";
import type { LogRecording } from "./recording";
import { start } from "./start";
import type { Integrity } from "./types";
import { inWords } from "./unreadable";
import type { Finding } from "./verifying";

/** Check `recording`; `integrity` is what opening it found, and is added to. */
export function begin(
  recording: LogRecording,
  integrity: Integrity,
  changed: (now: Integrity) => void,
  { everything = false, most = FETCHED }: Depth = {},
): Checking {
  const before = integrity.problems.length,
    checked = [...integrity.checked];
  let stopped = false;
  let worker: Worker | null = null;
  const take = (finding: Finding): void => {
    if (stopped) return;
    judge(integrity, finding, checked, before);
    changed(integrity);
  };
  const here = recording.source.handle?.kind !== "url";
  const run = async (): Promise<void> => {
    const plan = recording.plan(),
      manifest = await sealedManifest(recording);
    if (stopped) return;
    const all = here || everything,
      rows = all || plan.shape.stored <= most;
    if (typeof Worker === "undefined") {
      const [{ library, resultIn }, { verify }] = await Promise.all([import("./crew"), import("./verifying")]);
      const own = library(plan, { handle: { kind: "blob", blob: new Blob() } }, recording.source);
      return verify(
        { ...own, container: plan.container, manifest, result: resultIn(plan), all, rows },
        take,
        () => stopped,
      );
    }
    const mine = (worker = start());
    await new Promise<void>((resolve, reject) => {
      mine.onmessage = ({ data }: MessageEvent<Word>) => {
        if (data.is === "failed") reject(new Error(data.what));
        if (data.is !== "finding") return;
        take(data.finding);
        if (data.finding.done) resolve();
      };
      mine.onerror = (event) => reject(new Error(event.message));
      order(mine, recording, (reach) => ({ do: "verify", plan, reach, manifest, all, rows }));
    }).finally(() => mine.terminate());
  };
  const done = run().catch((error: unknown) => {
    if (stopped) return;
    integrity.problems = [...integrity.problems, { what: `it could not be checked: ${inWords(error)}` }];
    changed(integrity);
  });
  return {
    done,
    stop: () => {
      stopped = true;
      worker?.terminate();
    },
  };
}

function judge(integrity: Integrity, finding: Finding, checked: string[], before: number): void {
  integrity.problems = [...integrity.problems.slice(0, before), ...finding.problems];
  integrity.checked = [...checked, ...finding.checked];
  if (finding.left.length > 0) integrity.left = finding.left;
  else delete integrity.left;
  if (finding.seal) integrity.seal = finding.seal;
  // What a later version wrote, a running or a cut record is judged by none of this.
  if (integrity.verdict === "newer" || integrity.verdict === "live" || integrity.verdict === "truncated") return;
  if (integrity.problems.length > 0) integrity.verdict = "changed";
  else if (finding.done) integrity.verdict = !finding.seal ? "unsealed" : finding.rows ? "sealed" : "unread";
}

/** The bytes of the manifest, as they are. */
async function sealedManifest(recording: LogRecording): Promise<Uint8Array | null> {
  if (recording.kind === "bundle") {
    const { entries } = recording as BundleRecording,
      entry = entries?.get("manifest.json");
    return entry && entries ? entries.read(entry).catch(() => null) : null;
  }
  const { base } = recording.plan();
  if (recording.manifest === null || base === null) return null;
  const answer = await fetch(`${base}manifest.json`, { cache: "no-store" });
  return answer.ok ? new Uint8Array(await answer.arrayBuffer()) : null;
}
