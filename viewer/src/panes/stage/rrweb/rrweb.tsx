/**
 * The DOM as it changed: rrweb events replayed up to the playhead, in a frame that runs no scripts.
 */
import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { lazy } from "../../../core/lazy";
import type { Missing, Recording } from "../../../core/types";
import type { DomPlayer } from "../../../lazy/rrweb";
import { masked } from "../../../state/mask";
import { layerTime, useFollow, wallStart } from "../clock";
import { bytes, plural, type RendererProps } from "../layers";
import { ChoiceBox, MaskedBox, MissingBox } from "../missing";
import { isMissing, observationAt, readHeld } from "../reading";
import type { Sources } from "../sources";
import { useLatest } from "../use-latest";
import { cleanEvents, hasFull, type RrwebEvent } from "./events";

/** Of the lists that one replay needs. The choice is offered beyond it. */
const BYTES = 24_000_000;
const LISTS = 2_000;

type Stretch = { events: RrwebEvent[]; seq: number; restricted: boolean } | { size: number } | Missing;

export function Rrweb({ open, sources, body, fresh, layer }: RendererProps): JSX.Element {
  const { recording, outline } = open;
  const end = body.index < outline.steps.length ? outline.steps.end(body.index) : outline.total;
  const lane = body.index < outline.steps.length ? outline.steps.lane(body.index) : null;
  const newest = sources.back(end, lane, "rrweb").next().value;
  const seq = newest ? newest.seq : -1;
  const [anyway, setAnyway] = useState(false);
  const hide = seq >= 0 && masked("field", seq, body.index);
  const loaded = useLatest(recording, seq < 0 ? null : `${seq}/${anyway}/${hide}`, () =>
    stretch(recording, sources, seq, lane, anyway, hide),
  );
  const now = loaded.value;
  const count = now !== null && "events" in now ? now.events.length : 0;
  const line = count === 0 ? "rrweb" : `rrweb, ${plural(count, "event")} since its full snapshot`;
  useEffect(() => {
    if (fresh) layer.value = line;
  }, [line, fresh]);

  if (seq < 0)
    return (
      <MissingBox
        missing={{ missing: "not-captured", why: "No rrweb events up to the end of this step." }}
        what="rrweb"
      />
    );
  if (loaded.error !== null) return <MissingBox missing={{ missing: "lost", why: loaded.error }} what="rrweb events" />;
  if (now === null) return <div class="stage-wait" aria-busy="true" />;
  if (isMissing(now)) return <MissingBox missing={now} what="rrweb events" />;
  if ("size" in now) {
    return (
      <ChoiceBox
        title="Many rrweb events"
        numbers={`${bytes(now.size)} of events since the last full snapshot.`}
        choice="replay them"
        onChoose={() => setAnyway(true)}
      />
    );
  }
  if (now.restricted && hide) return <MaskedBox what="rrweb events (restricted)" seq={seq} />;
  return <Replay events={now.events} time={layerTime(outline)} start={wallStart(recording.header)} />;
}

/** The events from the newest full snapshot up to row `seq`. */
async function stretch(
  recording: Recording,
  sources: Sources,
  seq: number,
  lane: number | null,
  anyway: boolean,
  mask: boolean,
): Promise<Stretch> {
  const lists: unknown[][] = [];
  let size = 0;
  let restricted = false;
  let stream: string | null | undefined;
  for (const place of sources.back(seq, lane, "rrweb")) {
    if (lists.length >= LISTS) break;
    const observation = await observationAt(recording, place.seq, place.step);
    if (observation === null) continue;
    stream ??= observation.name;
    if (observation.name !== stream) continue;
    size += observation.ref?.size ?? 2_000;
    if (size > BYTES && !anyway) return { size };
    restricted ||= observation.ref?.tier === "restricted";
    const held = await readHeld(recording, observation);
    if (isMissing(held)) return held;
    const value = "value" in held ? held.value : null;
    if (!Array.isArray(value)) return { missing: "corrupt", why: "an rrweb observation that is no list of events" };
    lists.push(value);
    if (!hasFull(value)) continue;
    const events = cleanEvents(lists.reverse().flat(), mask);
    return events.length < 2
      ? { missing: "not-captured", why: "fewer than two events: nothing to replay" }
      : { events, seq, restricted };
  }
  return { missing: "not-captured", why: "no full snapshot before these events" };
}

function Replay({ events, time, start }: { events: RrwebEvent[]; time: number; start: number }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [player, setPlayer] = useState<DomPlayer | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let mounted: DomPlayer | null = null;
    let wanted = true;
    lazy<typeof import("../../../lazy/rrweb")>("rrweb").then(
      ({ mountReplay }) => {
        if (!wanted) return;
        try {
          mounted = mountReplay(element, events);
          setPlayer(mounted);
          setError(null);
        } catch (fault) {
          setError(fault instanceof Error ? fault.message : String(fault));
        }
      },
      (fault: unknown) => setError(fault instanceof Error ? fault.message : String(fault)),
    );
    return () => {
      wanted = false;
      mounted?.dispose();
      setPlayer(null);
    };
  }, [events]);
  const first = events[0]!.timestamp;
  const length = events.at(-1)!.timestamp - first;
  const seek = useCallback(
    (at: number) => {
      const ms = Math.min(length, Math.max(0, (start + at) / 1e6 - first));
      player?.seek(ms);
      if (box.current !== null && player !== null) fit(box.current);
    },
    [player, first, length, start],
  );
  useFollow(time, player === null ? null : seek);
  if (error !== null)
    return (
      <MissingBox missing={{ missing: "corrupt", why: `the replayer refused these events: ${error}` }} what="rrweb" />
    );
  return <div class="stage-rrweb" ref={box} data-testid="rrweb" />;
}

/** The frame has the recorded window's size; it is drawn as large as the pane allows. */
function fit(box: HTMLDivElement): void {
  const frame = box.querySelector("iframe");
  const wrapper = box.querySelector<HTMLElement>(".replayer-wrapper");
  const width = Number(frame?.getAttribute("width"));
  const height = Number(frame?.getAttribute("height"));
  if (wrapper === null || !(width > 0) || !(height > 0)) return;
  const scale = Math.min(1, box.clientWidth / width, box.clientHeight / height) || 1;
  wrapper.style.transformOrigin = "0 0";
  wrapper.style.transform = `translate(${Math.max(0, (box.clientWidth - width * scale) / 2)}px, 0) scale(${scale})`;
}
