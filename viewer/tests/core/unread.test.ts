/** A log that is too long to be fetched twice is never said to be checked, nor left as being checked: real ranges, real bundles. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { check, type Depth } from "../../src/core/integrity";
import { openAddress } from "../../src/core/open";
import type { Integrity } from "../../src/core/types";
import { GOLDEN } from "./golden";

let base = "";
const server = createServer((request, response) => {
  const data = readFileSync(join(GOLDEN, decodeURIComponent(request.url ?? "")));
  const [, from = "", to = ""] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  const first = from === "" ? Math.max(0, data.length - Number(to)) : Number(from),
    last = from === "" ? data.length - 1 : Number(to);
  response
    .writeHead(206, { "content-range": `bytes ${first}-${last}/${data.length}`, etag: '"one"' })
    .end(data.subarray(first, last + 1));
});

beforeAll(async () => {
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((go) => server.close(go)));

async function judged(name: string, depth: Depth): Promise<Integrity> {
  const { recording, integrity } = await openAddress(`${base}/${name}`);
  await check(recording, integrity, () => undefined, depth).done;
  return integrity;
}

describe("a log over what is fetched a second time", () => {
  it("ends as not checked, with what was looked at and what was not", async () => {
    const found = await judged("v1/complete.skn", { most: 0 });
    expect(found.verdict).toBe("unread");
    expect(found.checked).toContain("the manifest's seal");
    expect(found.checked).toContain("the ZIP's directory");
    expect(found.checked.join()).not.toMatch(/chain|rows/);
    expect(found.left?.[0]).toBe("the rows");
  });

  it("is sealed once everything was fetched for that, and nothing is left then", async () => {
    const found = await judged("v1/complete.skn", { most: 0, everything: true });
    expect([found.verdict, found.left]).toEqual(["sealed", undefined]);
    expect(found.checked.join()).toContain("the chain over");
  });

  it("that fits is checked; what was not fetched of the contents is said", async () => {
    const found = await judged("v0/blobs.skn", {});
    expect(found.verdict).toBe("sealed");
    expect(found.left?.join()).toMatch(/^\d+ entr(y|ies) of the bundle$/);
  });
});
