/** The messages of the request: which of them the request before had already, and which are new. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Decision, Message } from "../../core/types";
import { plural } from "../../state/words";
import { Icon } from "../icons";
import { Pictures } from "../pictures";
import { JsonView } from "./json-view";
import { parsed } from "./decision";
import { Heading, isMissing, Masked, NotThere } from "./masked";

/** Messages that are drawn at once: a context may have thousands. */
const PAGE = 12;

export function Messages({ decision, at }: { decision: Decision; at: number }): JSX.Element {
  const [more, setMore] = useState(0);
  const { messages } = decision;
  if (isMissing(messages))
    return (
      <p class="card">
        <NotThere missing={messages} what="messages" />
      </p>
    );
  const kept = Math.min(decision.kept, messages.length);
  const from = Math.max(0, messages.length - PAGE * (more + 1));
  return (
    <article class="card messages">
      <Heading aside={`${plural(kept, "message")} kept, ${messages.length - kept} added`}>Messages</Heading>
      {from > 0 ? (
        <button type="button" class="button small" onClick={() => setMore(more + 1)}>
          show {Math.min(PAGE, from)} of {from} before
        </button>
      ) : null}
      <ol start={from + 1}>
        {messages.slice(from).map((message, n) => (
          <li key={from + n} class={from + n < kept ? "kept" : "added"}>
            <One message={message} seq={decision.seq} at={at} added={from + n >= kept} />
          </li>
        ))}
      </ol>
    </article>
  );
}

function One({ message, seq, at, added }: { message: Message; seq: number; at: number; added: boolean }): JSX.Element {
  return (
    <details open={added}>
      <summary>
        <span class="pill">{added ? "added" : "kept"}</span> <b>{message.role}</b>{" "}
        <span class="muted clip">
          {message.result
            ? `result of ${message.result.id}`
            : message.text !== ""
              ? message.text.slice(0, 120)
              : message.calls.map((call) => call.name).join(", ")}
        </span>
      </summary>
      {message.text === "" || message.result ? null : (
        <p class="wrap">
          {message.text.slice(0, 4000)}
          {message.text.length > 4000 ? "…" : ""}
        </p>
      )}
      {message.calls.map((call, n) => (
        <div key={call.id ?? n}>
          <Icon name="tool" /> <b class="mono">{call.name}</b> <JsonView value={parsed(call.arguments)} lines={6} />
        </div>
      ))}
      {message.pictures ? (
        <Masked seq={seq} shownIn={at} what={plural(message.pictures.length, "picture")}>
          {() => <Pictures pictures={message.pictures} />}
        </Masked>
      ) : null}
      {message.result ? (
        <Masked seq={seq} shownIn={at} what="result" size={message.result.text.length}>
          {() => <JsonView value={parsed(message.result?.text ?? "")} lines={8} />}
        </Masked>
      ) : null}
    </details>
  );
}
