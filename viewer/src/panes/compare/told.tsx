/** What the two sides were told, as texts and as pictures: the requests from where they differ, and the tools' results. */
import type { JSX } from "preact";
import { picturesApart } from "../../core/dialects/pictures";
import type { Message, Picture } from "../../core/types";
import { plural } from "../../state/words";
import { Pictures } from "../pictures";
import { TextDiff, ValueDiff } from "./diff-view";
import { agree } from "./differences";

/** Messages that both requests begin with are counted; the first that differs and what follows is laid side by side. */
export function Prompts({ left, right }: { left: readonly Message[]; right: readonly Message[] }): JSX.Element {
  let same = 0;
  while (same < left.length && same < right.length && agree(left[same], right[same])) same += 1;
  const rest = Math.max(left.length, right.length) - same;
  return (
    <div class="prompts">
      {same > 0 ? (
        <p class="muted">
          The first {plural(same, "message")} {same === 1 ? "is" : "are"} the same.
        </p>
      ) : null}
      {Array.from({ length: Math.min(rest, 40) }, (_, n) => {
        const one = left[same + n],
          two = right[same + n];
        return (
          <article key={n} class="card">
            <h4>
              message {same + n} · {one?.role ?? "–"}
              {two && two.role !== one?.role ? ` / ${two.role}` : ""}
            </h4>
            <TextDiff left={one ? spoken(one) : ""} right={two ? spoken(two) : ""} />
            <Beside left={one?.pictures ?? []} right={two?.pictures ?? []} />
          </article>
        );
      })}
      {rest > 40 ? <p class="muted">{plural(rest - 40, "further message")} below.</p> : null}
    </div>
  );
}

export function Results({ left, right }: { left: unknown; right: unknown }): JSX.Element {
  const one = picturesApart(left),
    two = picturesApart(right);
  return (
    <>
      <ValueDiff left={one.rest} right={two.rest} />
      <Beside left={one.pictures} right={two.pictures} />
    </>
  );
}

/** The pictures of both sides, and whether they are the same: no text beside them says it. */
function Beside({ left, right }: { left: Picture[]; right: Picture[] }): JSX.Element | null {
  if (left.length + right.length === 0) return null;
  const same = left.length === right.length && left.every(({ base64 }, n) => base64 === right[n]?.base64);
  return (
    <>
      <p class="muted">{same ? "The pictures are the same." : "The pictures differ."}</p>
      <div class="sides">
        {[left, right].map((pictures, n) => (
          <div key={n}>
            <Pictures pictures={pictures} />
          </div>
        ))}
      </div>
    </>
  );
}

function spoken(message: Message): string {
  return [
    message.result ? "" : message.text,
    ...message.calls.map((call) => `→ ${call.name}(${call.arguments})`),
    message.result ? `← ${message.result.text}` : "",
  ]
    .filter((part) => part !== "")
    .join("\n");
}
