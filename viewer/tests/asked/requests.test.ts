/** Which requests for permission still wait, by the rows of a live run. */
import { describe, expect, it } from "vitest";
import { Mark, type Row } from "../../src/core/types";
import { Requests } from "../../src/panes/asked/waiting";
import { madeOutline } from "../timeline/made-outline";

const row = (seq: number, src: string, facts: Record<string, unknown>): Row => ({
  seq,
  t: seq,
  kind: "permission",
  src,
  lane: "main",
  data: { capability: "refund.pay", facts },
});
const asked = { default: "denied", id: "c1", reason: "it is broken", timeout: 60 };

describe("requests", () => {
  it("wait until the row of their answer names them", () => {
    const requests = new Requests();
    requests.take(row(5, "requested", asked));
    requests.take(row(9, "requested", { ...asked, id: "c2" }));
    expect(requests.open()).toMatchObject([
      { seq: 5, fallback: "denied", timeout: 60, facts: { reason: "it is broken" } },
      { seq: 9 },
    ]);
    expect(requests.open()[0]?.facts).toEqual({ reason: "it is broken" });
    requests.take(row(10, "granted", { asked: 5, by: "ann" }));
    expect(requests.open().map(({ seq }) => seq)).toEqual([9]);
    requests.take(row(11, "escalated", { asked: 9 }));
    expect(requests.open()).toMatchObject([{ seq: 9, escalated: true }]);
    requests.take(row(12, "denied", { asked: 9 }));
    expect(requests.open()).toEqual([]);
  });

  it("are only those of agents that stand still: a request said in passing asks nobody here", () => {
    const requests = new Requests();
    requests.take(row(1, "requested", {}));
    requests.take(row(2, "granted", {}));
    requests.take({ ...row(3, "requested", asked), kind: "observation" });
    requests.take(null);
    expect(requests.open()).toEqual([]);
  });

  it("are looked for in rows that came since, each once", () => {
    const requests = new Requests();
    const marks = [1, 4, 6].map((seq) => ({ t: seq, seq, mark: seq === 4 ? Mark.console : Mark.permission }));
    expect(requests.fresh(madeOutline({ marks: marks.slice(0, 2) }))).toEqual([1]);
    expect(requests.fresh(madeOutline({ marks }))).toEqual([6]);
    expect(requests.fresh(madeOutline({ marks }))).toEqual([]);
  });
});
