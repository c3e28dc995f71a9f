/** The button and the key for a comparison: to it, back from it, or to the question what to compare with. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { other, page } from "../../state/app";
import { commands } from "../../state/keys";
import { closeOther } from "../../state/open";
import { Icon } from "../icons";
import { part } from "../part";
import { Menu } from "./menu";

const ComparePanel = part(async () => (await import("./compare-panel")).ComparePanel);
const shown = signal(false);

export function CompareMenu(): JSX.Element {
  useEffect(() => {
    commands.value = { compare };
  }, []);
  if (other.value === null) {
    return (
      <Menu
        label="Compare with another run"
        shown={shown}
        button={
          <>
            <Icon name="compare" />
            <span class="word">compare</span>
          </>
        }
      >
        {(close) => <ComparePanel close={close} />}
      </Menu>
    );
  }
  const comparing = page.value === "compare";
  return (
    <button
      type="button"
      class="button"
      aria-pressed={comparing}
      title="Two runs side by side ( B )"
      onClick={comparing ? closeOther : compare}
    >
      <Icon name="compare" />
      <span class="word">{comparing ? "end compare" : "compare"}</span>
    </button>
  );
}

function compare(): void {
  if (other.value === null) shown.value = !shown.value;
  else page.value = page.value === "compare" ? "run" : "compare";
}
