/** rrweb events from strangers: sorted, without what could reach a network or was typed and is masked. */
import { describe, expect, it } from "vitest";
import { cleanEvents, hasFull } from "../../src/panes/stage/rrweb/events";

const element = (
  id: number,
  tagName: string,
  attributes: Record<string, unknown> = {},
  childNodes: unknown[] = [],
): unknown => ({ type: 2, id, tagName, attributes, childNodes });
const full = (node: unknown): unknown => ({ type: 2, timestamp: 20, data: { node } });

describe("events", () => {
  it("come in the order of their time, and only those that are events", () => {
    const events = cleanEvents(
      [
        { type: 3, timestamp: 30, data: {} },
        null,
        5,
        { type: "x", timestamp: 1 },
        { type: 4, timestamp: 10 },
        { type: 3, timestamp: NaN },
      ],
      false,
    );
    expect(events.map(({ type, timestamp }) => [type, timestamp])).toEqual([
      [4, 10],
      [3, 30],
    ]);
    expect(hasFull([full(null)])).toBe(true);
    expect(hasFull([{ type: 3 }, null])).toBe(false);
  });

  it("lose scripts, handlers and addresses, and keep every id", () => {
    const given = full(
      element(1, "html", {}, [
        element(2, "link", { rel: "preconnect", href: "https://evil.example" }),
        element(3, "link", { rel: "stylesheet", _cssText: "p{background:url(https://evil.example)}" }),
        element(4, "script", { src: "https://evil.example" }, [{ type: 3, id: 5, textContent: "evil()" }]),
        element(6, "img", { src: "https://evil.example/a.png", onerror: "evil()" }),
        element(7, "img", { src: "data:image/png;base64,AA" }),
        element(8, "meta", { "http-equiv": "refresh", content: "0;url=https://evil.example" }),
        element(9, "iframe", { src: "https://evil.example", srcdoc: "<script>" }),
      ]),
    );
    const added = {
      type: 3,
      timestamp: 30,
      data: {
        source: 0,
        adds: [{ parentId: 1, node: element(10, "a", { href: "javascript:evil()", onclick: "evil()" }) }],
        attributes: [{ id: 6, attributes: { src: "https://evil.example", onload: "evil()", class: "x" } }],
      },
    };
    const text = JSON.stringify(cleanEvents([given, added], false));
    expect(text).not.toMatch(/evil/);
    expect(text).toContain("data:image/png;base64,AA");
    for (const id of [1, 2, 3, 4, 6, 7, 8, 9, 10]) expect(text).toContain(`"id":${id}`);
  });

  it("lose what was typed, where it is masked", () => {
    const given = (): unknown[] => [
      full(
        element(1, "form", {}, [
          element(2, "input", { value: "secret" }),
          element(3, "textarea", { value: "secret" }, [{ type: 3, id: 4, textContent: "secret" }]),
          element(5, "input", { type: "submit", value: "Send" }),
        ]),
      ),
      { type: 3, timestamp: 30, data: { source: 5, id: 2, text: "secret", isChecked: false } },
      { type: 3, timestamp: 31, data: { source: 0, attributes: [{ id: 2, attributes: { value: "secret" } }] } },
    ];
    expect(JSON.stringify(cleanEvents(given(), true))).not.toContain("secret");
    expect(JSON.stringify(cleanEvents(given(), true))).toContain("Send");
    expect(JSON.stringify(cleanEvents(given(), false)).match(/secret/g)).toHaveLength(5);
  });

  it("are read at any depth", () => {
    let node = element(1, "div");
    for (let id = 2; id < 3_000; id += 1) node = element(id, "div", { onclick: "evil()" }, [node]);
    const [event] = cleanEvents([full(node)], true);
    let at = event!.data.node as { attributes: Record<string, unknown>; childNodes: unknown[] } | undefined;
    let depth = 0;
    for (; at !== undefined; depth += 1) {
      expect(at.attributes.onclick).toBeUndefined();
      at = at.childNodes[0] as typeof at;
    }
    expect(depth).toBe(2_999);
  });
});
