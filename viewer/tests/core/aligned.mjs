/**
 * What the panel says of two runs, for who compares it with another program: `node aligned.mjs ASKED.json`, one JSON on stdout.
 * Asked are keys to pair, texts to settle, pairs of values that may be volatile, values to tell in a line, and recordings to make
 * keys of and to align. `tests/diff/test_panel_agrees.py` asks.
 */
import { openAsBlob, readFileSync } from "node:fs";
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
const [{ openFile }, { scan }, { anchorsOf, keysOf, pairs }, { settled, volatileBy }, { telling }] = await Promise.all(
  ["open", "scan", "alignment", "volatile", "telling"].map(load),
);

async function outlineOf(path) {
  const { recording } = await openFile(await openAsBlob(path), path);
  const { outline, done } = scan(recording, () => undefined);
  await done;
  return outline;
}

const rowsOf = ({ left, right, exact, first }) => ({
  rows: Array.from(left, (a, row) => [a, right[row], exact[row] === 1]),
  first,
});

const asked = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const outlines = new Map();
for (const path of asked.recordings) outlines.set(path, await outlineOf(path));
const told = {
  pairs: asked.pairs.map(([left, right]) => rowsOf(pairs(left, right))),
  settled: asked.settled.map((text) => settled(text)),
  volatile: asked.volatile.map(([path, was, is]) => volatileBy(path, was, is)?.name ?? null),
  telling: asked.telling.map(telling),
  keys: asked.recordings.map((path) => keysOf(outlines.get(path))),
  aligned: asked.aligned.map(([a, b]) => {
    const [left, right] = [outlines.get(a), outlines.get(b)],
      found = pairs(keysOf(left), keysOf(right));
    return { ...rowsOf(found), anchors: anchorsOf(left, right, found) };
  }),
};
process.stdout.write(JSON.stringify(told), () => process.exit(0)); // what the server left open would keep the process
