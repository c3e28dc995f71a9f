/** The help sheet: every key, from the table that binds them, and what the shapes mean. */
import type { JSX } from "preact";
import "../../style/help.css";
import { PERMISSIONS, Status, type StatusCode } from "../../core/types";
import { drawer } from "../../state/app";
import { BINDINGS, type Binding } from "../../state/keys";
import { Icon, PERMISSION_ICON, STATUS } from "../icons";
import { Dialog } from "../shell/dialog";

const GROUPS: readonly Binding["group"][] = ["Move", "Timeline", "Look", "Do"];
const SHAPES: readonly StatusCode[] = [
  Status.ok,
  Status.failed,
  Status.denied,
  Status.running,
  Status.unknown,
  Status.note,
];

export function Help(): JSX.Element | null {
  if (drawer.value !== "help") return null;
  return (
    <Dialog title="Keys and shapes" class="help" onClose={() => (drawer.value = "none")}>
      <div class="columns-of-keys">
        {GROUPS.map((group) => (
          <div key={group} role="group" aria-label={group}>
            <h3>{group}</h3>
            <dl>
              {BINDINGS.filter((binding) => binding.group === group).map(({ shown, does }) => (
                <div key={shown}>
                  <dt>
                    {shown.split(" ").map((part) => (
                      <kbd key={part}>{part}</kbd>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </div>
        ))}
        <div role="group" aria-label="Shapes">
          <h3>Steps</h3>
          <ul class="legend">
            {SHAPES.map((status) => (
              <li key={status}>
                <Icon name={STATUS[status].icon} class={STATUS[status].class} /> {STATUS[status].word}
              </li>
            ))}
          </ul>
          <h3>Permissions</h3>
          <ul class="legend">
            {PERMISSIONS.map((word) => (
              <li key={word}>
                <Icon
                  name={PERMISSION_ICON[word]}
                  class={word === "denied" || word === "revoked" ? "is-denied" : "is-ok"}
                />{" "}
                {word.replace("_", " ")}
              </li>
            ))}
          </ul>
          <h3>Time of a step</h3>
          <ul class="legend whiskers">
            <li>
              <i class="think" /> the model thought
            </li>
            <li>
              <i class="tool" /> a tool ran
            </li>
            <li>
              <i class="environment" /> the environment answered
            </li>
          </ul>
        </div>
      </div>
    </Dialog>
  );
}
