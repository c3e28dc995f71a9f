/**
 * What the agent saw: its accessibility tree with what changed and what it acted on, and the screen beside it; where
 * it saw no tree, what it was told.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { moment } from "../../state/app";
import { masked } from "../../state/mask";
import { part } from "../part";
import { bytes, origin, pick, plural, type RendererProps } from "./layers";
import { ChoiceBox, MaskedBox, MissingBox } from "./missing";
import { isMissing } from "./reading";
import { Screen } from "./screen/screen";
import { TreeView } from "./tree-view";
import { treeAt, type Seen as SeenTree } from "./tree/chain";
import { treeChanges, type Changes } from "./tree/changes";
import { findActedOn } from "./tree/find";
import { NODES } from "./tree/tree";
import { useLatest } from "./use-latest";
import { stepNumber } from "../../state/numbers";

const Told = part(async () => (await import("./told")).Told);

/** Chips below the tree; the rest is a number. */
const CHIPS = 6;

export function Seen(props: RendererProps): JSX.Element {
  const { body, sources } = props;
  const observation = pick(body.seen, moment.value);
  const pictures = sources.has("screenshot");
  const left =
    observation === null && !sources.has("a11y_full", "a11y_delta") ? <Told {...props} /> : <TreePart {...props} />;
  return (
    <div class={pictures ? "stage-split" : "stage-whole"}>
      <div class="stage-left">{left}</div>
      {pictures ? (
        <div class="stage-right">
          <Screen {...props} beside />
        </div>
      ) : null}
    </div>
  );
}

function TreePart({ open, sources, body, fresh, layer }: RendererProps): JSX.Element {
  const { recording, outline } = open;
  const observation = pick(body.seen, moment.value);
  const [limit, setLimit] = useState(NODES);
  const lane = body.index >= 0 && body.index < outline.steps.length ? outline.steps.lane(body.index) : null;
  const loaded = useLatest(recording, observation === null ? null : `${observation.seq}/${limit}`, async () => {
    const seen = await treeAt(recording, sources, observation!, lane, limit);
    if (isMissing(seen) || seen.before === null) return { seen, changes: null, since: -1 };
    const before = await treeAt(recording, sources, seen.before, lane, limit);
    return {
      seen,
      changes: isMissing(before) ? null : treeChanges(before.tree, seen.tree),
      since: seen.before.step,
    };
  });
  const now = loaded.value;
  const seen = now === null || isMissing(now.seen) ? null : now.seen;
  const line = observation === null ? "no tree" : seen === null ? "accessibility tree" : describe(seen, body.index);
  useEffect(() => {
    if (fresh) layer.value = line;
  }, [line, fresh]);

  if (observation === null) {
    return (
      <MissingBox
        missing={{ missing: "not-captured", why: "No tree was observed before this step." }}
        what="accessibility tree"
      />
    );
  }
  if (observation.ref?.tier === "restricted" && masked("field", observation.seq, body.index)) {
    return <MaskedBox what="accessibility tree (restricted)" seq={observation.seq} />;
  }
  if (loaded.error !== null)
    return <MissingBox missing={{ missing: "lost", why: loaded.error }} what="accessibility tree" />;
  if (now === null) return <div class="stage-wait" aria-busy="true" />;
  if (isMissing(now.seen)) return <MissingBox missing={now.seen} what="accessibility tree" />;
  const tree = now.seen.tree;
  const acted = moment.value === "action" && body.acted !== null ? findActedOn(tree, body.acted) : null;
  return (
    <>
      <TreeView
        tree={tree}
        changes={now.changes}
        acted={acted}
        hidden={masked("field", now.seen.observation.seq, body.index)}
        seq={now.seen.observation.seq}
      />
      {moment.value === "action" &&
      body.acted !== null &&
      acted === null &&
      (body.acted.ref ?? body.acted.name) !== null ? (
        <p class="stage-note is-warn">
          The element that was acted on ({body.acted.ref ?? body.acted.name}) is not in this tree.
        </p>
      ) : null}
      {now.seen.misfits.length > 0 ? (
        <p class="stage-note is-warn">
          {plural(now.seen.misfits.length, "entry")} of its deltas did not fit: {now.seen.misfits[0]}
        </p>
      ) : null}
      {tree.cut > 0 ? (
        <ChoiceBox
          title={`${tree.size.toLocaleString("en")} of ${(tree.size + tree.cut).toLocaleString("en")} nodes are shown`}
          numbers={`All of them take about ${bytes((tree.size + tree.cut) * 300)} of memory.`}
          choice="show all"
          onChoose={() => setLimit(Number.MAX_SAFE_INTEGER)}
        />
      ) : null}
      {now.changes === null ? null : (
        <Changed
          changes={now.changes}
          since={now.since}
          hidden={masked("field", now.seen.observation.seq, body.index)}
        />
      )}
    </>
  );
}

function Changed({ changes, since, hidden }: { changes: Changes; since: number; hidden: boolean }): JSX.Element {
  const { lines } = changes;
  const from = since < 0 ? "the start" : `step ${stepNumber(since)}`;
  if (lines.length === 0) return <p class="stage-changed muted">nothing changed since {from}</p>;
  return (
    <p class="stage-changed mono">
      <span class="muted">
        + {lines.length.toLocaleString("en")} changed since {from}
      </span>
      {lines.slice(0, CHIPS).map((line, i) => {
        const Tag = line.kind === "removed" ? "del" : "ins";
        return (
          <Tag key={i} class={`stage-chip ${line.kind}`}>
            {hidden && (line.typed || (line.node.role === "option" && line.text.startsWith("selected ")))
              ? `${line.node.role} masked`
              : line.text}
          </Tag>
        );
      })}
      {lines.length > CHIPS ? <span class="muted">and {(lines.length - CHIPS).toLocaleString("en")} more</span> : null}
    </p>
  );
}

export function describe(seen: SeenTree, step: number): string {
  const kind = seen.form === "text" ? "aria snapshot" : "accessibility tree";
  const size = plural(seen.tree.size, "node");
  if (seen.observation.src === "a11y_delta" && seen.before !== null) {
    return `${kind}, ${size}, delta from ${seen.before.step < 0 ? "the start" : `step ${stepNumber(seen.before.step)}`}`;
  }
  return `${kind}, ${size}, ${origin(seen.observation, step)}`;
}
