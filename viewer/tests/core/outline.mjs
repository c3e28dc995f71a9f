/**
 * What the panel makes of bundles and of bare logs, for who compares it with another reader: `node outline.mjs FILE...`, one line of JSON
 * for each. `tests/panel/test_outline_agrees.py` asks for it.
 */
import { openAsBlob } from "node:fs";
import { resolve } from "node:path";
import { createServer } from "vite";

const server = await createServer({
  root: resolve(import.meta.dirname, "../.."),
  logLevel: "error",
  server: { middlewareMode: true, hmr: false, ws: false, watch: null },
  optimizeDeps: { noDiscovery: true },
  appType: "custom",
});
const load = (name) => server.ssrLoadModule(`/src/core/${name}.ts`);
const names = ["open", "scan", "bodies", "verdict", "recording-bundle", "index-file", "bytes"];
const [{ openFile }, { scan }, { loadStep }, { verdictOf }, { BundleRecording }, { IndexMaker }, { BlobBytes }] =
  await Promise.all(names.map(load));

/** A log on its own, as a directory has it. */
async function openLog(blob, label) {
  const maker = new IndexMaker();
  maker.text(new Uint8Array(await blob.arrayBuffer()));
  const shape = { at: 0, stored: blob.size, deflated: false };
  const recording = new BundleRecording(label, new BlobBytes(blob), maker.index, shape, null, null);
  return { recording, integrity: { verdict: "unsealed" } };
}

for (const path of process.argv.slice(2)) {
  const blob = await openAsBlob(path);
  const { recording, integrity } = await (path.endsWith(".jsonl") ? openLog : openFile)(blob, path);
  const { outline, done } = scan(recording, () => undefined);
  await done;
  const steps = [];
  for (let i = 0; i < outline.steps.length; i++) {
    const { decision, calls, rows } = await loadStep(recording, outline, i),
      at = outline.steps;
    steps.push({
      index: i + outline.base,
      seq: at.seq(i),
      lane: outline.lanes[at.lane(i)],
      at: at.t0(i),
      name: at.name(i),
      model: at.model(i),
      input_tokens: at.tokensIn(i),
      output_tokens: at.tokensOut(i),
      status: at.status(i),
      failed: at.failed(i),
      think: at.think(i),
      thought: at.thought(i),
      observed: at.observed(i),
      rows: rows.length,
      text: decision?.text ?? null,
      reasoning: decision?.reasoning ?? null,
      finish: decision?.finish ?? null,
      error: decision?.error ?? null,
      messages: Array.isArray(decision?.messages) ? decision.messages : null,
      kept: decision?.kept ?? null,
      calls: calls.map(({ id, name, ran, error, result, seq }) => ({ id, name, ran, error, result, seq })),
    });
  }
  const verdict = verdictOf(recording, outline);
  console.log(
    JSON.stringify({
      path,
      integrity: integrity.verdict,
      rows: outline.scanned,
      outcome: verdict.outcome,
      verdict,
      steps,
    }),
  );
}
await server.close();
process.exit(0); // what the server left open would keep the process
