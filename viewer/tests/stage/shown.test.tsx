/**
 * @vitest-environment happy-dom
 *
 * What the stage draws: never nothing while the next thing comes, a reason where there is nothing, text for everything
 * that was recorded, and no value of a field while it is masked.
 */
import { render } from "preact";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Missing } from "../../src/core/types";
import { run } from "../../src/state/app";
import { MissingBox, REASONS } from "../../src/panes/stage/missing";
import { AnsiText } from "../../src/panes/stage/terminal/ansi-text";
import { TreeView } from "../../src/panes/stage/tree-view";
import { treeChanges } from "../../src/panes/stage/tree/changes";
import { readTree } from "../../src/panes/stage/tree/tree";
import { useLatest } from "../../src/panes/stage/use-latest";

let host: HTMLElement;

beforeEach(() => {
  host = document.createElement("div");
  document.body.append(host);
});

afterEach(() => {
  act(() => render(null, host));
  host.remove();
  run.value = null;
});

interface Awaited<T> {
  promise: Promise<T>;
  give: (value: T) => void;
  refuse: (why: Error) => void;
}

function awaited<T>(): Awaited<T> {
  let give!: (value: T) => void;
  let refuse!: (why: Error) => void;
  const promise = new Promise<T>((resolve, reject) => {
    give = resolve;
    refuse = reject;
  });
  return { promise, give, refuse };
}

describe("while the next thing comes", () => {
  const comes: Record<string, Awaited<string>> = {};
  function Shows({ owner, at }: { owner: object; at: string }) {
    const { value, fresh, error } = useLatest(owner, at, () => (comes[at] ??= awaited<string>()).promise);
    return <p>{`${value ?? "nothing"} ${fresh ? "fresh" : "kept"} ${error ?? ""}`.trim()}</p>;
  }
  const owner = {};
  const show = (at: string, of: object = owner): Promise<void> =>
    act(() => render(<Shows owner={of} at={at} />, host)) as Promise<void>;
  const settle = (move: () => void): Promise<void> => act(async () => move());

  it("the last one stays, what comes too late is dropped, and another run begins with nothing", async () => {
    await show("a");
    expect(host.textContent).toBe("nothing kept");
    await settle(() => comes.a!.give("A"));
    expect(host.textContent).toBe("A fresh");
    await show("b");
    expect(host.textContent).toBe("A kept");
    await show("c");
    await settle(() => comes.b!.give("B"));
    expect(host.textContent, "b is no longer asked for").toBe("A kept");
    await settle(() => comes.c!.give("C"));
    expect(host.textContent).toBe("C fresh");
    await show("d");
    await settle(() => comes.d!.refuse(new Error("no such row")));
    expect(host.textContent).toBe("C fresh no such row");
    await show("e", {});
    expect(host.textContent).toBe("nothing kept");
  });
});

describe("in place of what is not there", () => {
  it.each(Object.keys(REASONS) as Missing["missing"][])("stands the reason: %s", (missing) => {
    act(() => render(<MissingBox missing={{ missing, why: "<b>because</b>" }} what="screenshot" />, host));
    const note = host.querySelector("[role=note]");
    expect(note?.getAttribute("data-missing")).toBe(missing);
    expect(note?.textContent).toContain(REASONS[missing].title);
    expect(note?.textContent).toContain("<b>because</b>");
    expect(note?.querySelector("b")).toBeNull();
  });
});

describe("a tree", () => {
  const tree = readTree({
    role: "main",
    name: "<img src=x onerror=evil()>",
    ref: "e1",
    children: [
      {
        role: "textbox",
        name: "Reason",
        ref: "e2",
        value: "secret words",
        children: [{ role: "text", name: "secret words" }],
      },
      { role: "option", name: "Lamp", ref: "e4", states: ["selected"] },
      { role: "button", name: "Pay\u202e", ref: "e3", states: ["disabled"] },
    ],
  })!;
  const draw = (hidden: boolean): string => {
    const acted = tree.roots[0]!.children[2]!;
    act(() =>
      render(
        <TreeView
          tree={tree}
          changes={treeChanges(readTree({ role: "main", ref: "e1" })!, tree)}
          acted={acted}
          hidden={hidden}
          seq={5}
        />,
        host,
      ),
    );
    return host.textContent ?? "";
  };

  it("is drawn as text, with the acted-on element marked and what reorders text shown", () => {
    const text = draw(false);
    expect(text).toContain("<img src=x onerror=evil()>");
    expect(host.querySelector("img")).toBeNull();
    expect(text).toContain("secret words");
    expect(text).toContain("⟨U+202E⟩");
    const acted = host.querySelector(".row.acted");
    expect(acted?.textContent).toContain("disabled");
    expect(acted?.textContent).toMatch(/^acted on, level 2, button/);
    expect(acted?.getAttribute("aria-selected")).toBe("true");
  });

  it("says nothing of what is in a field while that is masked, to eyes or to a screen reader", () => {
    const text = draw(true);
    const attributes = [...host.querySelectorAll(".stage-node, .stage-node *")]
      .flatMap((element) => [...element.attributes].map(({ value }) => value))
      .join(" ");
    for (const said of [text, attributes]) {
      expect(said).not.toContain("secret");
      expect(said).not.toContain("selected");
    }
    expect(text.match(/masked/g)).toHaveLength(2);
    expect(text).toContain("Reason");
  });

  it("of fifty thousand nodes is a few rows", () => {
    const large = readTree({
      role: "list",
      children: Array.from({ length: 49_000 }, (_, i) => ({ role: "listitem", name: `item ${i}`, ref: `e${i}` })),
    })!;
    act(() =>
      render(<TreeView tree={large} changes={null} acted={large.roots[0]!.children[40_000]!} hidden seq={5} />, host),
    );
    expect(host.querySelectorAll("[role=option]").length).toBeLessThan(80);
  });
});

it("terminal output is text, whatever it holds", () => {
  act(() =>
    render(
      <AnsiText
        text={"\x1b[31m<script>evil()</script>\x1b[0m\n\x1b[38;2;1;2;3mfine\x1b]8;;javascript:evil()\x07link"}
      />,
      host,
    ),
  );
  expect(host.querySelector("script, a, img")).toBeNull();
  expect(host.textContent).toBe("<script>evil()</script>finelink");
  expect(host.querySelector(".fg-1")?.textContent).toBe("<script>evil()</script>");
});
