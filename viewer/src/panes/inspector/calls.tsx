/** A tool call: what was asked of the world, what came back, whether it really ran. */
import type { JSX } from "preact";
import { picturesApart } from "../../core/dialects/pictures";
import type { ToolCall } from "../../core/types";
import { duration } from "../../state/words";
import { Icon } from "../icons";
import { Pictures } from "../pictures";
import { JsonView } from "./json-view";
import { pretty } from "./json-text";
import { Heading, isMissing, Masked, NotThere, SeekTo } from "./masked";

const RAN: Record<ToolCall["ran"], string> = {
  recorded: "",
  outside: "ran outside of the record",
  unknown: "nobody knows how it ended",
  unanswered: "its result never went back to the model",
};

export function CallCard({ call, at }: { call: ToolCall; at: number }): JSX.Element {
  const failed = call.error !== null;
  return (
    <article class={`card call ${failed ? "failed" : ""}`}>
      <Heading aside={call.ms === null ? null : duration(call.ms * 1e6)}>
        <Icon
          name={failed ? "cross" : call.ran === "unknown" ? "question" : "tick"}
          class={failed ? "is-failed" : call.ran === "unknown" ? "is-unknown" : "is-ok"}
          label={failed ? "failed" : call.ran === "unknown" ? "end unknown" : "ok"}
        />{" "}
        <span class="mono name">{call.name}</span>
      </Heading>
      <div class="kv">
        <span>asked</span>
        {isMissing(call.arguments) ? (
          <NotThere missing={call.arguments} what="arguments" />
        ) : (
          <JsonView value={call.arguments} />
        )}
        {failed ? (
          <>
            <span>failed</span>
            <Masked
              seq={call.end ?? call.seq}
              shownIn={at}
              what={errorClass(call.error ?? "")}
              size={call.error?.length ?? 0}
            >
              {() => <span class="is-failed wrap">{call.error}</span>}
            </Masked>
          </>
        ) : null}
        {!failed && call.ran !== "unknown" ? (
          <>
            <span>came back</span>
            <Result call={call} at={at} />
          </>
        ) : null}
        {call.effect === null ? null : (
          <>
            <span>effect</span>
            <span>{call.effect}</span>
          </>
        )}
        {RAN[call.ran] === "" ? null : (
          <>
            <span>ran</span>
            <span class="is-warn">{RAN[call.ran]}</span>
          </>
        )}
      </div>
      <footer class="muted">
        <SeekTo seq={call.seq}>call {call.seq}</SeekTo>
        {call.end === null ? (
          " · no end"
        ) : (
          <>
            {" "}
            · <SeekTo seq={call.end}>end {call.end}</SeekTo>
          </>
        )}
        {call.id ? ` · ${call.id}` : ""}
      </footer>
    </article>
  );
}

function Result({ call, at }: { call: ToolCall; at: number }): JSX.Element {
  if (isMissing(call.result)) return <NotThere missing={call.result} what="result" />;
  if (call.result === undefined) return <span class="muted">nothing that is recorded</span>;
  const size = typeof call.result === "string" ? call.result.length : pretty(call.result).length;
  return (
    <Masked seq={call.end ?? call.seq} shownIn={at} what="result" size={size}>
      {() => <Shown value={call.result} />}
    </Masked>
  );
}

function Shown({ value }: { value: unknown }): JSX.Element {
  const { pictures, rest } = picturesApart(value);
  return (
    <div>
      <Pictures pictures={pictures} />
      <JsonView value={rest} />
    </div>
  );
}

/** The class of an error says what went wrong, not with what: it is shown, the rest is masked. */
function errorClass(error: string): string {
  return /^[A-Za-z_][\w.]*(?=:|$)/.exec(error)?.[0] ?? "error";
}
