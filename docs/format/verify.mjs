// Verify recordings of Worldline: node verify.mjs PATH... (attempt directories, bundles). One line of JSON for each; exit code 1
// where one is not ok. Not judged: signatures, what a bundle derives from its log, and fields that no verdict rests on.
import { createHash, createHmac } from "node:crypto";
import { lstatSync, readFileSync, readdirSync } from "node:fs";
import { crc32, inflateRawSync } from "node:zlib";
const FORMATS = ["worldline/0", "worldline/1"], CONTAINERS = ["worldline-container/0", "worldline-container/1"];
const NOTES = ["annotations.jsonl", "audit.jsonl"], FIRST = "events snapshots resources|thumbs restricted decisions|network media";
const ORDER = `${FIRST} expiry index manifest annotations audit container`.split(" ").map((names) => new RegExp(`^(${names})`));
const place = (name) => `${"abcdefghijkl"[ORDER.findIndex((known) => known.test(name))]}${ORDER[2].test(name) ? name.replace(/^\w+\//, "").slice(0, 64) + name : ""}`;
const WORST = ["ok", "packed", "withheld", "expired", "derived", "unsealed", "failed", "missing"], ALL = 0xffffffff;
const NAME = /^((manifest|index|container)\.json|[a-z]+\.jsonl|restricted\/key|(resources|thumbs|snapshots|media)\/[\w-]+(\.[a-z]+4?|\.kf\.json|\/meta\.json))$/;
const REMOVAL = /^{"seq":(\d+),"at":(\d+),"seal":"(\w+)","name":"(\w+)","tier":"(\w+)","size":(\d+),"retention":(\d+),"deadline":(\d+),"h":/;
const none = Buffer.alloc(0), kindOf = (row) => `${row?.kind}/${row?.src}`, tag = (number) => Buffer.from([number]), hex = (data) => data.toString("hex"), sha = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const is = (data, size, digest) => data.length === size && hex(sha(data)) === digest, need = (holds, why) => { if (!holds) throw new Error(why); };
const attempt = (action, failed = () => null) => { try { return action(); } catch (error) { return failed(error); } };
const parse = (data) => JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data)), text = (value) => typeof value === "string";
const isHash = (value) => text(value) && /^[0-9a-f]{64}$/.test(value), whole = (...values) => values.every((n) => Number.isSafeInteger(n) && n >= 0);
const object = (value) => ({}).toString.call(value) === "[object Object]", ascends = (table) => table.every((row, at) => Array.isArray(row) && (at === 0 || table[at - 1][0] < row[0]));
const named = (value) => (text(value?.$blob?.name) ? [value.$blob] : value instanceof Object ? Object.values(value).flatMap(named) : []);
const le = (sizes, ...values) => Buffer.concat(values.map((n, at) => Buffer.from(BigUint64Array.of(BigInt(n)).buffer).subarray(0, sizes[at])));
function unsealed(line, mark, first) { // the object without its own digest, which is over `first` and the bytes before
  const end = Math.max(line.length - mark.length - 66, 0), before = line.subarray(0, end);
  need(line.toString("latin1", end) === `${mark}${hex(sha(tag(first), before))}"}`, `${mark} does not fit`);
  return parse(Buffer.concat([before, Buffer.from("}")]));
}
function readManifest(line) { // fails where it cannot be believed
  const m = unsealed(line.subarray(0, -1), ',"seal":"', 3), { name, size, sha256, publish } = m.result, facts = [m.coverage, m.secrets, m.limits];
  need(line.at(-1) === 10 && /^run_[0-7]\w{25}$/.test(m.run) && /^ainst_[0-7]\w{25}$/.test(m.attempt) && facts.every(object), "its facts");
  need([m.head, m.root, m.header, sha256].every(isHash) && text(publish) && whole(size, m.rows - 1) && Array.isArray(m.masks), "its facts");
  need(/^[^/\\\0.][^/\\\0]*\.json$/.test(name) && (m.torn === null || (whole(m.torn.size) && isHash(m.torn.sha256))), "its files");
  need(ascends(m.chunks) && m.chunks.reduce((sum, chunk) => sum + chunk[1], 0) === m.bytes && ascends(m.blobs), "its tables");
  const chunk = (c) => c.length === 3 && /^[0-9]{6,}\.jsonl$/.test(c[0]) && whole(c[1]) && isHash(c[2]);
  need(m.chunks.every(chunk) && m.blobs.every((b) => b.length === 5 && isHash(b[0]) && whole(b[1]) && b.slice(2).every(text)), "its rows");
  m.sealed_at = BigInt(line.toString("latin1").match(/"sealed_at":(\d+)/)[1]); // a number would be rounded
  return { ...m, contents: m.blobs.map(([name, size, , tier]) => ({ name, size, tier })), seal: line.toString("latin1").slice(-67, -3) };
}
function* chained(log, head = Buffer.alloc(32)) { // each line with its leaf and its hash, and whether it carries that
  for (const part of log.toString("latin1").match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const line = Buffer.from(part, "latin1"), leaf = sha(tag(0), line.subarray(0, -73));
    head = sha(tag(2), head, leaf);
    yield { line, leaf, h: hex(head), fits: part.slice(-73) === `,"h":"${hex(head)}"}\n` };
  }
}
function readRows(log, m, say) { // chain, seq and sync marks, then what the seal says of them
  const peaks = [], heads = [], rows = [];
  for (let { line, leaf, h, fits } of chained(log)) {
    const seq = heads.length, row = attempt(() => parse(line)) ?? {}, [n, start] = Array.isArray(row.sync) ? row.sync : [0];
    const synced = !row.sync || (n > 0 && n <= seq && start === heads[n - 1].slice(0, 16)), texts = [row.kind, row.src, row.lane];
    if (fits && row.seq === seq && whole(row.t, row.dt, row.v) && texts.every(text) && object(row.data) && synced) rows.push(row);
    else say("structure", `row ${seq}: not as it was written`);
    for (let size = seq; size & 1; size >>= 1) leaf = sha(tag(1), peaks.pop(), leaf);
    peaks.push(leaf), heads.push(h);
  }
  const [header, last] = [rows[0], rows.at(-1)], root = peaks.length && hex(peaks.reduceRight((right, left) => sha(tag(1), left, right)));
  if (kindOf(header) !== "meta/header") say("structure", "row 0 is no header");
  else need(FORMATS.includes(header.data.format), `the format ${header.data.format}`);
  for (const [name, found] of Object.entries({ rows: heads.length, head: heads.at(-1), root, header: header?.h, bytes: log.length }))
    if (m && m[name] !== found) say("structure", `${name}: the seal says ${m[name]}`);
  if (m && kindOf(last) !== "meta/end") say("structure", "the last row is not meta/end");
  return { header: header?.data, references: named(rows.map((row) => row.data)) };
}
function readNotes(m, say, load) { // what people wrote beside it: lines that chain, of this attempt and its rows
  for (const name of NOTES) for (const [index, { line, fits }] of [...chained(load(name))].entries()) {
    const { n, attempt: whose, seq = 0 } = attempt(() => parse(line)) ?? {}, due = !m || (whose === m.attempt && whole(seq) && seq < m.rows);
    if (!fits || n !== index || !due) say("structure", `${name}: line ${index} is not what the chain needs there`);
  }
}
function readContents(contents, m, records, key, load, say, gone = new Set()) { // `load` gives bytes, null for broken, nothing
  for (const [index, { line, fits }] of [...chained(records)].entries()) {
    const [, seq, at, seal, name, tier, size, retention, deadline] = REMOVAL.exec(line) ?? [], kept = m?.retention?.[tier];
    const sealed = m?.contents.some((content) => content.name === name && content.size === +size && content.tier === tier);
    const due = fits && +seq === index && sealed && seal === m.seal && kept === +retention && m.sealed_at + BigInt(kept) * 10n ** 9n;
    if (due && BigInt(deadline) === due && BigInt(at) >= due && !gone.has(name)) gone.add(name);
    else say("availability", `record ${index} of expiry.jsonl does not hold`, "failed");
  }
  for (const { name, size, tier } of contents) {
    const found = load({ name, tier }), data = found === undefined ? (gone.has(name) ? "expired" : "missing") : found;
    const hash = tier === "restricted" ? createHmac("sha256", key) : createHash("sha256");
    if (text(data)) say("availability", data === "missing" ? `${name}: missing` : "", data);
    else if (data?.length !== size || hash.update(data).digest("hex") !== name) say("evidence", `${name}: not what was written`);
  }
}
function verifyDirectory(path, say) {
  const names = readdirSync(path, { recursive: true }), kind = (name) => lstatSync(`${path}/${name}`), keyed = "blobs/restricted/key";
  const has = (name) => names.includes(name) && kind(name).isFile(), read = (name, gone = none) => attempt(() => readFileSync(`${path}/${name}`)) ?? gone;
  const place = ({ name, tier }) => `blobs/${tier}/${name.slice(0, 2)}/${name}`, line = read("manifest.json");
  const m = has("manifest.json") ? attempt(() => readManifest(line), (error) => say("structure", `manifest: ${error.message}`)) : null;
  const log = [...names.filter((name) => /^chunks\/[^/]+\.jsonl$/.test(name)).sort(), "tail.jsonl"].map((name) => read(name)), key = read(keyed);
  const load = (blob) => (!has(place(blob)) ? undefined : blob.tier === "restricted" && key.length !== 32 ? "missing" : read(place(blob)));
  const { header, references } = readRows(Buffer.concat(log), m, say);
  readContents([...(m?.contents ?? []), ...references], m, read("expiry.jsonl"), key, load, say), readNotes(m, say, (name) => read(name));
  if (!m) return say("publication", "it is not sealed", "unsealed");
  const { name, size, sha256, publish } = m.result, due = m.chunks.map((chunk) => ["structure", `chunks/${chunk[0]}`, ...chunk.slice(1)]);
  if (m.torn) due.push(["structure", "tail.torn", m.torn.size, m.torn.sha256]);
  for (const result of ["result.json", `../../../${name}`].slice(0, publish === "none" ? 1 : 2)) due.push(["publication", result, size, sha256]);
  for (const [question, name, ...bytes] of due) if (!is(read(name, tag(0)), ...bytes)) say(question, `${name}: not what was sealed`);
  const known = ["lock", "open.json", "manifest.json", "manifest.staged.json", "expiry.jsonl", ...NOTES, ...due.map((row) => row[1]), ...m.contents.map(place)];
  if (m.contents.some((content) => content.tier === "restricted")) known.push(keyed);
  const odd = (name) => (kind(name).isDirectory() ? !/^(chunks|blobs(\/\w+){0,2})$/.test(name) : !known.includes(name) || !has(name));
  for (const name of names.filter(odd)) say("structure", `${name}: not of this recording`);
  const open = Object.fromEntries(["format", "session", "run", "attempt", "pid"].map((name) => [name, header?.[name] ?? null]));
  for (const [name, bytes] of [["lock", ""], ["open.json", `${JSON.stringify(open)}\n`]]) if (has(name) && read(name).toString() !== bytes) say("structure", `${name}: not what the header says`);
  say("publication", "", m.derived_from ? "derived" : publish === "none" ? "withheld" : "ok");
  if (!read("manifest.staged.json").equals(line)) say("publication", "not the manifest that was staged", "failed");
}
function verifyBundle(path, say, begins = 0) {
  const file = readFileSync(path), end = file.length - 98, kept = new Map(), directory = [], here = new Map();
  need(end > 88 && file.readUInt32LE(0) === 0x04034b50, "it is no bundle");
  const [at, from] = [end + 48, end - 8].map((place) => Number(file.readBigUInt64LE(place))), data = file.subarray(from + 64, at);
  const { format, entries, seal, withheld } = unsealed(data, ',"container":"', 4), said = JSON.stringify({ format, entries, seal, withheld });
  entries.push(["container.json", 0, data.length, data.length, crc32(data), hex(sha(data))]);
  for (const [name, method, size, stored, crc, digest] of entries) {
    need(NAME.test(name) && !kept.has(name) && whole(size, stored, crc) && [0, 8].includes(method), `the entry ${name}`);
    const shared = (extra) => le("2222244422", 45, 0, method, 0, 0x21, crc, ALL, ALL, name.length, extra);
    const local = Buffer.concat([le("4", 0x04034b50), shared(20), Buffer.from(name), le("2288", 1, 16, size, stored)]);
    const central = [le("42", 0x02014b50, 0x32d), shared(28), le("22244", 0, 0, 0, 0x81800000, ALL), Buffer.from(name)];
    directory.push(...central, le("22888", 1, 24, size, stored, begins));
    const from = begins + local.length, raw = file.subarray(from, from + stored), limits = { info: true, maxOutputLength: size + 1 };
    const { buffer, engine } = method ? attempt(() => inflateRawSync(raw, limits)) ?? {} : { buffer: raw };
    const exact = file.subarray(begins, from).equals(local) && is(raw, stored, digest) && (engine?.bytesWritten ?? stored) === stored;
    if (!exact || buffer?.length !== size || crc32(buffer) !== crc) say("structure", `${name}: not what was packed`);
    kept.set(name, exact && buffer?.length === size ? buffer : null), begins = from + stored;
    if (name.startsWith("resources/")) here.set(name.slice(10, 74), kept.get(name));
  }
  const tail = Buffer.concat(directory), count = entries.length, few = Math.min(count, 0xffff);
  const record = [0x06064b50, 44, 0x32d, 45, 0, 0, count, count, tail.length, begins], locator = [0x07064b50, 0, end, 1];
  const ends = le("4822448888448442222442", ...record, ...locator, 0x06054b50, 0, 0, few, few, ALL, ALL, 0);
  need(file.subarray(begins).equals(Buffer.concat([tail, ends])), "its directory is not what container.json says");
  const complete = ["events.jsonl", "index.json", "manifest.json"].every((name) => kept.has(name)) && kept.get("container.json");
  need(complete && CONTAINERS.includes(format) && data.toString().startsWith(`${said.slice(0, -1)},"container":"`), "an entry is missing, or container.json is not as due");
  const get = (name) => kept.get(name) ?? none, left = withheld.map((row) => row[0]);
  const m = attempt(() => readManifest(get("manifest.json")), (error) => say("structure", `manifest: ${error.message}`));
  const { references } = readRows(get("events.jsonl"), m, say), tiers = new Map(m?.contents.map((content) => [content.name, content.tier]));
  const strange = left.some((name) => tiers.get(name) !== "restricted") || references.some(({ name }) => !tiers.has(name));
  if (entries.some(([name], at) => at > 0 && place(name) < place(entries[at - 1][0]))) say("structure", "its entries stand in another order");
  if (m && (seal !== m.seal || strange)) say("structure", "another seal, contents that were not sealed, or left out without need");
  if ([...here.keys()].some((name) => !tiers.has(name))) say("evidence", "a content that was not sealed");
  const load = ({ name, tier }) => (!here.has(name) && tier === "restricted" && left.includes(name) ? "withheld" : here.get(name));
  readContents(m?.contents ?? [], m, get("expiry.jsonl"), get("restricted/key"), load, say), readNotes(m, say, get);
  if (m && !is(Buffer.from(attempt(() => parse(get("index.json")).result) ?? ""), m.result.size, m.result.sha256)) say("structure", "its index holds another result");
  say("publication", "", m?.derived_from ? "derived" : m && m.result.publish !== "none" ? "packed" : "withheld");
}
for (const path of process.argv.slice(2)) {
  const states = { structure: "ok", evidence: "ok", publication: "ok", availability: "ok" }, problems = [];
  const say = (question, detail, state = question === "availability" ? "missing" : "failed") => (
    detail && problems.push(`${question}: ${detail}`), (states[question] = WORST[Math.max(WORST.indexOf(state), WORST.indexOf(states[question]))]) && null);
  const refuse = (error) => { problems.push(error.message); for (const question in states) states[question] = "refused"; };
  attempt(() => (lstatSync(path).isDirectory() ? verifyDirectory : verifyBundle)(path, say), refuse);
  console.log(JSON.stringify({ path, ok: problems.length === 0, ...states, problems })), (process.exitCode ||= problems.length ? 1 : 0);
}
