"""What an agent sees of a page: the accessibility tree with references and boxes, and the document with its styles.

Both come from Chromium itself: the tree it gives to screen readers, the boxes of its layout, the rules of its sheets.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import CDPSession, Page

SKIPPED = {"none", "generic", "InlineTextBox", "LineBreak", "LayoutTable", "LayoutTableRow", "LayoutTableCell"}
STATES = ("disabled", "checked", "expanded", "selected", "focused", "required", "readonly", "invalid", "pressed")
# The document as it stands, one file: styles inlined, fields with what is in them, no script.
WHOLE = """() => {
  const copy = document.documentElement.cloneNode(true);
  const live = document.querySelectorAll("input, select, textarea");
  copy.querySelectorAll("input, select, textarea").forEach((field, n) => {
    const value = live[n].value;
    if (field.tagName === "SELECT")
      [...field.options].forEach((option) => option.toggleAttribute("selected", option.value === value));
    else if (field.tagName === "TEXTAREA") field.textContent = value;
    else field.setAttribute("value", value);
  });
  copy.querySelectorAll("script, link[rel=stylesheet]").forEach((element) => element.remove());
  const style = document.createElement("style");
  style.textContent = [...document.styleSheets].flatMap((s) => [...s.cssRules].map((r) => r.cssText)).join("\\n");
  copy.querySelector("head").append(style);
  return "<!doctype html>" + copy.outerHTML;
}"""


class Eyes:
    """The sight of one page. References stay with their elements as long as the document lasts."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        self._cdp.send("Accessibility.enable")
        self._refs: dict[int, str] = {}
        self.tree: dict[str, Any] = {}
        self.nodes: dict[str, dict[str, Any]] = {}

    def look(self) -> tuple[str, dict[str, Any]]:
        """The tree of now: `("a11y_full", tree)`, or `("a11y_delta", changes)` where most of it is as it was."""
        before, old = self.nodes, self.tree
        self.tree = self._whole()
        self.nodes = dict(flat(self.tree))
        changes = delta(old, before, self.tree, self.nodes) if old else None
        return ("a11y_full", self.tree) if changes is None else ("a11y_delta", changes)

    def document(self) -> bytes:
        """The document as one file."""
        return str(self._page.evaluate(WHOLE)).encode()

    def text(self) -> str:
        """The tree as a model reads it."""
        return "\n".join(lines(self.tree))

    def _whole(self) -> dict[str, Any]:
        nodes = {n["nodeId"]: n for n in self._cdp.send("Accessibility.getFullAXTree")["nodes"]}
        root = next(n for n in nodes.values() if "parentId" not in n)
        [made] = self._node(root, nodes, self._boxes())
        return made

    def _boxes(self) -> dict[int, list[int]]:
        """The box of each element in CSS pixels of the screen, by Chromium's number of it."""
        snapshot = self._cdp.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
        document = snapshot["documents"][0]
        numbers, layout = document["nodes"]["backendNodeId"], document["layout"]
        top, left = document.get("scrollOffsetY", 0), document.get("scrollOffsetX", 0)
        return {
            numbers[index]: [round(x - left), round(y - top), round(w), round(h)]
            for index, (x, y, w, h) in zip(layout["nodeIndex"], layout["bounds"], strict=True)
        }

    def _node(
        self, node: dict[str, Any], nodes: dict[str, dict[str, Any]], boxes: dict[int, list[int]]
    ) -> list[dict[str, Any]]:
        """The node with what is below it; where it says nothing itself, what is below it."""
        role = str(node.get("role", {}).get("value", "none"))
        name = str(node.get("name", {}).get("value", ""))
        number = node.get("backendDOMNodeId", 0)
        skipped = node.get("ignored") or role in SKIPPED
        ref = "" if skipped else self._ref(number)  # before those below it, so that numbers go down the page
        children = [nodes[child] for child in node.get("childIds", ()) if child in nodes]
        below = [made for child in children for made in self._node(child, nodes, boxes)]
        if skipped:
            return below
        made: dict[str, Any] = {"role": ROLES.get(role, role), "name": name, "ref": ref}
        if (value := node.get("value", {}).get("value")) not in (None, ""):
            made["value"] = value
        said = {p["name"]: p["value"].get("value") for p in node.get("properties", ())}
        if states := [state for state in STATES if said.get(state) in (True, "true")]:
            made["states"] = states
        if number in boxes:
            made["box"] = boxes[number]
        # A text that only repeats its element's name says nothing more.
        if below and not (len(below) == 1 and below[0]["role"] == "text" and below[0]["name"] == name):
            made["children"] = below
        return [made]

    def _ref(self, number: int) -> str:
        return self._refs.setdefault(number, f"e{len(self._refs) + 1}")


ROLES = {"RootWebArea": "document", "StaticText": "text", "Image": "img", "ListMarker": "marker", "LabelText": "label"}


def flat(node: dict[str, Any], parent: str = "", index: int = 0) -> Any:
    """Every node by its reference: itself without children, with its parent and place."""
    own = {key: value for key, value in node.items() if key != "children"}
    yield node["ref"], {"own": own, "parent": parent, "index": index, "node": node}
    for place, child in enumerate(node.get("children", ())):
        yield from flat(child, node["ref"], place)


def delta(
    old: dict[str, Any], before: dict[str, dict[str, Any]], new: dict[str, Any], after: dict[str, dict[str, Any]]
) -> dict[str, Any] | None:
    """What changed between two trees; None where the whole tree says it better."""
    if old["ref"] != new["ref"] or old["name"] != new["name"]:
        return None
    added = [ref for ref in after if ref not in before]
    removed = [ref for ref in before if ref not in after]
    changed = [ref for ref in after if ref in before and after[ref]["own"] != before[ref]["own"]]
    moved = any(after[ref]["parent"] != before[ref]["parent"] for ref in after if ref in before)
    if moved or len(added) + len(removed) + len(changed) > len(after) / 2:
        return None
    tops = [ref for ref in added if after[ref]["parent"] not in added]
    return {
        "changed": [{**dict.fromkeys(before[ref]["own"], None), **after[ref]["own"]} for ref in changed],
        "added": [{k: after[ref][k] for k in ("parent", "index", "node")} for ref in tops],
        "removed": [ref for ref in removed if before[ref]["parent"] not in removed],
    }


def lines(node: dict[str, Any], depth: int = 0) -> Any:
    """The tree as lines: role, name, what is in it, reference."""
    states = "".join(f" [{state}]" for state in node.get("states", ()))
    value = f": {node['value']}" if "value" in node else ""
    yield f'{"  " * depth}- {node["role"]} "{node["name"]}"{states} [ref={node["ref"]}]{value}'
    for child in node.get("children", ()):
        yield from lines(child, depth + 1)
