/**
 * The terminal of a step: its cast at the playhead where there is one, and the output as text, with what came before
 * it.
 */
import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { lazy } from "../../../core/lazy";
import type { CastPlayer } from "../../../lazy/terminal";
import { askReveal, masked } from "../../../state/mask";
import { WindowList } from "../../steps/window-list";
import { layerTime, useFollow } from "../clock";
import { bytes, plural, type RendererProps } from "../layers";
import { ChoiceBox, MaskedBox, MissingBox } from "../missing";
import { useLatest } from "../use-latest";
import { AnsiLine } from "./ansi-text";
import type { Line } from "./ansi";
import { castAt, scrollback, type Block, type PlacedCast, type Scrollback } from "./scrollback";
import { stepNumber } from "../../../state/numbers";

const ROW_HEIGHT = 18;

export function Terminal(props: RendererProps): JSX.Element {
  const { open, sources, body, fresh, layer } = props;
  const { recording, outline } = open;
  const known = body.index < outline.steps.length;
  const end = known ? outline.steps.end(body.index) : outline.total;
  const lane = known ? outline.steps.lane(body.index) : null;
  const [form, setForm] = useState<"cast" | "output">("cast");
  const [all, setAll] = useState(false);
  const [anyway, setAnyway] = useState(false);
  const time = layerTime(outline);
  const loaded = useLatest(recording, `${end}/${all}/${anyway}`, async () => {
    const [output, cast] = await Promise.all([
      scrollback(recording, sources, end, lane, all),
      castAt(recording, sources, end, known ? outline.steps.t1(body.index) : outline.span[1], anyway),
    ]);
    return { output, cast };
  });
  const now = loaded.value;
  const hasOutput = now !== null && now.output.blocks.length > 0;
  const showCast = now !== null && now.cast !== null && (form === "cast" || !hasOutput);
  const line = now === null ? "terminal" : describe(showCast ? now.cast : null, now.output, time, body.index);
  useEffect(() => {
    if (fresh) layer.value = line;
  }, [line, fresh]);

  if (loaded.error !== null) return <MissingBox missing={{ missing: "lost", why: loaded.error }} what="terminal" />;
  if (now === null) return <div class="stage-wait" aria-busy="true" />;
  if (!hasOutput && now.cast === null) {
    return (
      <MissingBox
        missing={{ missing: "not-captured", why: "No terminal output up to the end of this step." }}
        what="terminal"
      />
    );
  }
  return (
    <div class="stage-screen">
      {now.cast !== null && hasOutput ? (
        <div class="stage-tools" role="toolbar" aria-label="Terminal">
          {(["cast", "output"] as const).map((id) => (
            <button
              key={id}
              type="button"
              class="button small"
              aria-pressed={(id === "cast") === showCast}
              onClick={() => setForm(id)}
            >
              {id}
            </button>
          ))}
        </div>
      ) : null}
      {showCast && now.cast !== null ? (
        "size" in now.cast ? (
          <ChoiceBox
            title="A long cast"
            numbers={`The file has ${bytes(now.cast.size)}.`}
            choice="load it"
            onChoose={() => setAnyway(true)}
          />
        ) : masked("field", now.cast.observation.seq, body.index) ? (
          <MaskedBox what={`a cast of ${seconds(now.cast.cast.duration)}`} seq={now.cast.observation.seq} />
        ) : (
          <CastView placed={now.cast} time={time} />
        )
      ) : (
        <Output output={now.output} step={body.index} onAll={() => setAll(true)} />
      )}
    </div>
  );
}

type Entry =
  | { block: Block; kind: "head" }
  | { block: Block; kind: "line"; line: Line }
  | { block: Block; kind: "hidden" | "missing" };

function Output({ output, step, onAll }: { output: Scrollback; step: number; onAll: () => void }): JSX.Element {
  const [picked, setPicked] = useState(-1);
  const entries: Entry[] = [];
  let own = -1;
  for (const block of output.blocks) {
    if (own < 0 && block.observation.step === step) own = entries.length;
    entries.push({ block, kind: "head" });
    if (block.missing !== null) entries.push({ block, kind: "missing" });
    else if (masked("field", block.observation.seq, step)) entries.push({ block, kind: "hidden" });
    else for (const line of block.lines) entries.push({ block, kind: "line", line });
  }
  // The step's own output begins at the top of what is seen; where it brought none, the newest one is the place.
  const place = own >= 0 ? own : entries.findLastIndex(({ kind }) => kind === "head");
  useEffect(() => setPicked(-1), [output]);
  return (
    <>
      {output.cut > 0 || output.earlier > 0 ? (
        <p class="stage-note">
          {output.cut > 0 ? `${output.cut.toLocaleString("en")} characters before these are not shown. ` : ""}
          {output.earlier > 0 ? `${plural(output.earlier, "earlier output")} not shown. ` : ""}
          {output.cut > 0 ? (
            <button type="button" class="link" onClick={onAll}>
              show more
            </button>
          ) : null}
        </p>
      ) : null}
      <WindowList
        class="stage-lines ansi"
        label="Terminal output"
        length={entries.length}
        rowHeight={ROW_HEIGHT}
        active={picked >= 0 ? picked : place}
        onPick={setPicked}
        onOpen={(at) => {
          if (entries[at]!.kind === "hidden") askReveal("field", entries[at]!.block.observation.seq);
        }}
        rowClass={(at) => `${entries[at]!.kind}${entries[at]!.block.observation.step === step ? " own" : ""}`}
        row={(at) => <EntryRow entry={entries[at]!} step={step} />}
      />
    </>
  );
}

function EntryRow({ entry, step }: { entry: Entry; step: number }): JSX.Element {
  const { block } = entry;
  if (entry.kind === "line") return <AnsiLine line={entry.line} />;
  if (entry.kind === "missing") return <span class="missing">{block.missing}</span>;
  if (entry.kind === "hidden") {
    return (
      <span
        class="hatched stage-masked"
        title="Click here, or press Enter on the row, to reveal it"
        onClick={() => askReveal("field", block.observation.seq)}
      >
        {plural(block.lines.length, "line")}, {plural(block.characters, "character")} masked, reveal…
      </span>
    );
  }
  const at = block.observation.step;
  const where = at === step ? "this step" : at < 0 ? "before the first step" : `step ${stepNumber(at)}`;
  return (
    <span class="stage-block-head">
      {block.observation.name ?? "terminal"} · {where}
    </span>
  );
}

function CastView({ placed, time }: { placed: PlacedCast; time: number }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [player, setPlayer] = useState<CastPlayer | null>(null);
  const [error, setError] = useState<string | null>(null);
  const fail = (fault: unknown): void => setError(fault instanceof Error ? fault.message : String(fault));
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let mounted: CastPlayer | null = null;
    let wanted = true;
    lazy<typeof import("../../../lazy/terminal")>("terminal")
      .then(({ mountCast }) => {
        if (!wanted) return;
        mounted = mountCast(element, placed.cast);
        setPlayer(mounted);
      })
      .catch(fail);
    return () => {
      wanted = false;
      mounted?.dispose();
      element.replaceChildren();
      setPlayer(null);
    };
  }, [placed]);
  const seek = useCallback(
    (at: number) => {
      const within = Math.min(placed.cast.duration, Math.max(0, (at - placed.start) / 1e9));
      player?.seek(within).catch(fail);
    },
    [player, placed],
  );
  useFollow(time, player === null ? null : seek);
  if (error !== null)
    return <MissingBox missing={{ missing: "corrupt", why: `the player refused this cast: ${error}` }} what="cast" />;
  return (
    <>
      <div class="stage-cast" ref={box} data-testid="cast" />
      {placed.cast.damaged > 0 ? (
        <p class="stage-note is-warn">{plural(placed.cast.damaged, "line")} of the cast could not be read.</p>
      ) : null}
    </>
  );
}

function describe(cast: PlacedCast | { size: number } | null, output: Scrollback, time: number, step: number): string {
  if (cast !== null && "cast" in cast) {
    const at = Math.min(cast.cast.duration, Math.max(0, (time - cast.start) / 1e9));
    return `cast, ${cast.cast.columns} × ${cast.cast.rows}, at ${seconds(at)} of ${seconds(cast.cast.duration)}`;
  }
  const own = output.blocks.filter(({ observation }) => observation.step === step);
  const lines = own.reduce((sum, { lines: all }) => sum + all.length, 0);
  return own.length === 0
    ? "terminal output, nothing new in this step"
    : `terminal output, ${plural(lines, "line")} in this step`;
}

function seconds(value: number): string {
  const whole = Math.floor(value);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
