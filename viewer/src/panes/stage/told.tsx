/**
 * What an agent without eyes saw: the messages that were new to its model, what it did, and what came back.
 *
 * For most agents this is the whole world, so it is a layer of the stage and not only a tab of the inspector.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { picturesApart } from "../../core/dialects/pictures";
import { isObject } from "../../core/fields";
import type { ToolCall } from "../../core/types";
import { moment } from "../../state/app";
import { masked } from "../../state/mask";
import { Pictures } from "../pictures";
import { plural, type RendererProps } from "./layers";
import { MaskedBox, MissingBox } from "./missing";
import { isMissing } from "./reading";
import { AnsiText } from "./terminal/ansi-text";

/** Characters of one text that are drawn without asking. */
const TEXT = 20_000;

export function Told({ body, fresh, layer }: RendererProps): JSX.Element {
  const { decision, calls } = body;
  const added = decision === null || isMissing(decision.messages) ? [] : decision.messages.slice(decision.kept);
  // What it said itself before is no news to it.
  const messages = added.filter(({ role }) => role !== "assistant" && role !== "model");
  const line = `what it was told: ${plural(messages.length, "new message")}, ${plural(calls.length, "tool call")}`;
  useEffect(() => {
    if (fresh) layer.value = line;
  }, [line, fresh]);
  const hidden = decision !== null && masked("field", decision.seq, body.index);
  return (
    <div class="stage-told scroll" tabIndex={0} role="region" aria-label="What the agent was told">
      {decision === null ? null : (
        <Part title="It was told" on={moment.value === "before"}>
          {isMissing(decision.messages) ? (
            <MissingBox missing={decision.messages} what="the request's messages" />
          ) : null}
          {messages.length === 0 && !isMissing(decision.messages) ? (
            <p class="muted">Nothing new since its last decision.</p>
          ) : null}
          {messages.map((message, i) => (
            <div key={i} class="stage-message">
              <span class="stage-role">
                {message.result === undefined ? message.role : `${message.role}, a result`}
              </span>
              {/* What came back from the world is masked; what people and the program told the model is not. */}
              {message.result !== undefined && hidden ? (
                <MaskedBox what={plural(message.result.text.length, "character")} seq={decision.seq} />
              ) : (
                <>
                  <Said value={message.result?.text ?? message.text} />
                  {/* A picture is what came back, whoever brings it: agents that look at a screen show it as their user. */}
                  {message.pictures !== undefined && hidden ? (
                    <MaskedBox what={plural(message.pictures.length, "picture")} seq={decision.seq} />
                  ) : (
                    <Pictures pictures={message.pictures} />
                  )}
                </>
              )}
            </div>
          ))}
        </Part>
      )}
      <Part title={calls.length === 0 ? "It said" : "It did"} on={moment.value === "action"}>
        {calls.length === 0 ? (
          <Text text={decision?.text || "(nothing)"} />
        ) : (
          calls.map((call) => <Did key={call.seq} call={call} step={body.index} />)
        )}
      </Part>
      {calls.length === 0 ? null : (
        <Part title="It came back" on={moment.value === "after"}>
          {calls.map((call) => (
            <CameBack key={call.seq} call={call} step={body.index} />
          ))}
        </Part>
      )}
    </div>
  );
}

function Part({ title, on, children }: { title: string; on: boolean; children: ComponentChildren }): JSX.Element {
  return (
    <section class={`stage-part${on ? " on" : ""}`}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** A tool call's arguments. What was typed by it is masked as a field is. */
function Did({ call, step }: { call: ToolCall; step: number }): JSX.Element {
  const hidden = masked("field", call.seq, step);
  const plain =
    isObject(call.arguments) && hidden && "text" in call.arguments
      ? { ...call.arguments, text: "[masked]" }
      : call.arguments;
  return (
    <div class="stage-message">
      <span class="stage-role">{call.name}</span>
      {isMissing(plain) ? (
        <MissingBox missing={plain} what={`the arguments of ${call.name}`} />
      ) : (
        <Said value={plain} />
      )}
    </div>
  );
}

function CameBack({ call, step }: { call: ToolCall; step: number }): JSX.Element {
  const seq = call.end ?? call.seq;
  if (call.end === null) return <p class="muted">{call.name}: nobody knows how it ended.</p>;
  if (isMissing(call.result)) return <MissingBox missing={call.result} what={`the result of ${call.name}`} />;
  const value = call.error ?? call.result;
  if (masked("field", seq, step)) {
    const size = typeof value === "string" ? value.length : (JSON.stringify(value) ?? "").length;
    return <MaskedBox what={`${call.name}, ${plural(size, "character")}`} seq={seq} />;
  }
  const { pictures, rest } = picturesApart(value);
  return (
    <div class={`stage-message${call.error === null ? "" : " is-failed"}`}>
      <span class="stage-role">{call.name}</span>
      <Pictures pictures={pictures} />
      <Said value={rest} />
    </div>
  );
}

/**
 * A value for reading: an object's texts of several lines stand as texts below their names, everything else as JSON. A
 * text that is JSON itself (what most tools answer) is read as such.
 */
function Said({ value }: { value: unknown }): JSX.Element {
  const whole = typeof value === "string" ? (parsed(value) ?? value) : value;
  if (typeof whole === "string") return <Text text={whole} />;
  if (!isObject(whole)) return <Text text={json(whole)} />;
  const texts = Object.entries(whole).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string" && /[\n\r\x1b]/.test(entry[1]),
  );
  const rest = Object.fromEntries(Object.entries(whole).filter(([key]) => !texts.some(([name]) => name === key)));
  return (
    <>
      {texts.length === 0 || Object.keys(rest).length > 0 ? <Text text={json(rest)} /> : null}
      {texts.map(([name, text]) => (
        <div key={name} class="stage-said">
          <span class="muted">{name}</span>
          <Text text={text} />
        </div>
      ))}
    </>
  );
}

/** On one line where it is short. */
function json(value: unknown): string {
  const tall = JSON.stringify(value, null, 2) ?? "";
  const flat = tall.replace(/\n\s*/g, " ");
  return flat.length <= 70 ? flat : tall;
}

function parsed(text: string): unknown {
  if (text.length > 1_000_000 || !/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function Text({ text }: { text: string }): JSX.Element {
  const [all, setAll] = useState(false);
  const cut = !all && text.length > TEXT;
  return (
    <>
      <AnsiText text={cut ? text.slice(0, TEXT) : text} wrap />
      {cut ? (
        <button type="button" class="button small" onClick={() => setAll(true)}>
          show all {text.length.toLocaleString("en")} characters
        </button>
      ) : null}
    </>
  );
}
