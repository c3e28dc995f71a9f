/** Whether this page masks, in a word; a click says more. */
import type { JSX } from "preact";
import { maskOn } from "../../state/app";
import { revealed } from "../../state/mask";
import { Icon } from "../icons";
import { part } from "../part";
import { Menu } from "./menu";

const MaskPanel = part(async () => (await import("./mask-panel")).MaskPanel);

export function MaskMenu(): JSX.Element {
  const open = revealed();
  const all = open.some((entry) => entry.scope === "session") || !maskOn.value;
  const word = all ? "revealed" : open.length > 0 ? `masked, ${open.length} open` : "masked";
  return (
    <Menu
      label={`Masking: ${word}`}
      class={all || open.length > 0 ? "mask-button open" : "mask-button"}
      button={
        <>
          <Icon name={all ? "revealed" : "masked"} />
          <span class="word">{word}</span>
        </>
      }
    >
      {(close) => <MaskPanel close={close} />}
    </Menu>
  );
}
