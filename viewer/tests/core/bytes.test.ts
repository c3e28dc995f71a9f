/** Bytes by ranges of a real server: bound to one version of the file, honest where the server is not. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { UrlBytes } from "../../src/core/bytes";
import { openAddress } from "../../src/core/open";
import { GOLDEN } from "./golden";

const DATA = Buffer.from(Array.from({ length: 400_000 }, (_, i) => (i * 7 + (i >> 8)) & 255));
const BUNDLE = readFileSync(join(GOLDEN, "v1/seen.skn"));

/** How the server behaves now; the next test sets it anew. */
const how = { tag: '"one"', ranges: true, status: 0, cut: false, shift: 0, ifRange: [] as (string | undefined)[] };
let base = "";

const server = createServer((request: IncomingMessage, response: ServerResponse) => {
  const data = request.url === "/b.skn" ? BUNDLE : DATA;
  how.ifRange.push(request.headers["if-range"]?.toString());
  if (how.status) return response.writeHead(how.status).end();
  const asked = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "");
  const same = request.headers["if-range"] === undefined || request.headers["if-range"] === how.tag;
  if (!asked || !how.ranges || !same)
    return response.writeHead(200, { "content-length": data.length, etag: how.tag }).end(data);
  const from = asked[1] ? Number(asked[1]) : Math.max(0, data.length - Number(asked[2]));
  const to = asked[1] && asked[2] ? Math.min(Number(asked[2]), data.length - 1) : data.length - 1;
  const part = data.subarray(from + how.shift, to + 1 + how.shift);
  const headers = { "content-range": `bytes ${from + how.shift}-${to + how.shift}/${data.length}`, etag: how.tag };
  if (how.cut) return response.writeHead(206, headers).end(part.subarray(1));
  return response.writeHead(206, headers).end(part);
});

beforeAll(async () => {
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((go) => server.close(go)));

const start = (change: Partial<typeof how> = {}): void =>
  void Object.assign(how, { tag: '"one"', ranges: true, status: 0, cut: false, shift: 0, ifRange: [] }, change);

describe("ranges of an address", () => {
  it("are the bytes of the file, and no more of it is fetched than that", async () => {
    start();
    const bytes = await UrlBytes.open(`${base}/f`);
    expect(bytes.size).toBe(DATA.length);
    for (const [offset, length] of [
      [0, 10],
      [1000, 4096],
      [DATA.length - 5, 5],
      [DATA.length, 0],
    ] as const)
      expect(Buffer.from(await bytes.read(offset, length))).toEqual(DATA.subarray(offset, offset + length));
    expect(bytes.fetched).toBeLessThan(200_000);
    expect(how.ifRange.filter(Boolean)).toEqual(['"one"', '"one"']);
    await expect(bytes.read(DATA.length - 1, 2)).rejects.toMatchObject({ why: "truncated" });
  });

  it("refuse a file that changes meanwhile, also where the server ignores If-Range", async () => {
    start();
    const bytes = await UrlBytes.open(`${base}/f`);
    how.tag = '"two"';
    await expect(bytes.read(0, 10)).rejects.toMatchObject({ why: "changed" });
    start({ tag: 'W/"weak"' });
    const weak = await UrlBytes.open(`${base}/f`);
    how.tag = 'W/"other"';
    await expect(weak.read(0, 10)).rejects.toMatchObject({ why: "changed" });
  });

  it("do without ranges where the server has none and the file is small", async () => {
    start({ ranges: false });
    const bytes = await UrlBytes.open(`${base}/f`);
    expect(Buffer.from(await bytes.read(1000, 10))).toEqual(DATA.subarray(1000, 1010));
  });

  it("say what the server answered, and see what it cut or shifted", async () => {
    start({ status: 404 });
    await expect(UrlBytes.open(`${base}/f`)).rejects.toMatchObject({
      why: "network",
      what: expect.stringContaining("404"),
    });
    start();
    const bytes = await UrlBytes.open(`${base}/f`);
    how.cut = true;
    await expect(bytes.read(0, 10)).rejects.toMatchObject({ why: "network" });
    start({ shift: 1 });
    await expect(bytes.read(0, 10)).rejects.toMatchObject({ why: "network" });
    await expect(UrlBytes.open("http://127.0.0.1:9/f")).rejects.toMatchObject({ why: "network" });
  });

  it("open a bundle", async () => {
    start();
    const { recording, integrity } = await openAddress(`${base}/b.skn`);
    expect(recording.label).toBe("b.skn");
    expect(integrity.problems).toEqual([]);
    expect((await recording.row(recording.index.rows - 1))?.src).toBe("end");
  });
});
