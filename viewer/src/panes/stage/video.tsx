/**
 * The video of a run: the track's picture at the playhead, by its key frames, which name rows and times.
 */
import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Missing } from "../../core/types";
import { playing, speed } from "../../state/app";
import { masked } from "../../state/mask";
import { layerTime, useFollow } from "./clock";
import type { RendererProps } from "./layers";
import { MaskedBox, MissingBox } from "./missing";
import { useLatest } from "./use-latest";

export interface Frame {
  t: number;
  seq: number;
  ms: number;
}

/** Where in the video, in seconds, the run's time `t` is; between two key frames time passes in both alike. */
export function videoSeconds(frames: readonly Frame[], t: number): number {
  let low = 0;
  let high = frames.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (frames[middle]!.t <= t) low = middle + 1;
    else high = middle;
  }
  const frame = frames[low - 1];
  if (frame === undefined) return (frames[0]?.ms ?? 0) / 1e3;
  const next = frames[low]?.ms ?? Infinity;
  // Waiting is cut in the video: until the next picture was there, the last millisecond before it shows this one.
  return Math.min(frame.ms + (t - frame.t) / 1e6, next - 1) / 1e3;
}

export function Video({ open, body, fresh, layer }: RendererProps): JSX.Element {
  const { recording, outline } = open;
  const tracks = useLatest(recording, "tracks", () => recording.media());
  const [chosen, setChosen] = useState(0);
  const track = tracks.value?.[Math.min(chosen, tracks.value.length - 1)] ?? null;
  const frames = track === null ? [] : track.frames;
  const hide = masked("field", frames[0]?.seq ?? 0, body.index);
  const time = layerTime(outline);
  const line = track === null ? "video" : `video ${track.track}, ${videoSeconds(frames, time).toFixed(1)} s`;
  useEffect(() => {
    if (fresh) layer.value = line;
  }, [line, fresh]);
  if (tracks.error !== null) return <MissingBox missing={{ missing: "lost", why: tracks.error }} what="video" />;
  if (tracks.value === null) return <div class="stage-wait" aria-busy="true" />;
  if (track === null)
    return <MissingBox missing={{ missing: "not-captured", why: "This recording has no media." }} what="video" />;
  return (
    <div class="stage-screen">
      {tracks.value.length < 2 ? null : (
        <div class="stage-tools" role="toolbar" aria-label="Video">
          {tracks.value.map(({ track: name }, i) => (
            <button
              key={name}
              type="button"
              class="button small"
              aria-pressed={i === chosen}
              onClick={() => setChosen(i)}
            >
              {name}
            </button>
          ))}
        </div>
      )}
      {hide ? (
        <MaskedBox what={`video ${track.track}`} seq={frames[0]?.seq ?? 0}>
          <p>It shows what is typed, and fields of a video cannot be masked one by one.</p>
        </MaskedBox>
      ) : (
        <Player key={track.track} load={track.blob} frames={frames} time={time} />
      )}
    </div>
  );
}

function Player({
  load,
  frames,
  time,
}: {
  load: () => Promise<Blob | Missing>;
  frames: readonly Frame[];
  time: number;
}): JSX.Element {
  const element = useRef<HTMLVideoElement>(null);
  const [address, setAddress] = useState<string | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [ready, setReady] = useState(false);
  useEffect(() => {
    let made: string | null = null;
    let wanted = true;
    load().then(
      (blob) => {
        if (!wanted) return;
        if ("missing" in blob) return setFault(blob.why);
        made = URL.createObjectURL(blob);
        setAddress(made);
      },
      (error: unknown) => setFault(error instanceof Error ? error.message : String(error)),
    );
    return () => {
      wanted = false;
      if (made !== null) URL.revokeObjectURL(made);
    };
  }, []);
  const seek = useCallback(
    (at: number) => {
      const video = element.current;
      if (video === null) return;
      const seconds = videoSeconds(frames, at);
      // While both run at the same pace a small difference is no reason to decode anew.
      const slack = playing.peek() ? 0.35 : 0.02;
      if (Math.abs(video.currentTime - seconds) > slack) video.currentTime = seconds;
    },
    [frames],
  );
  useFollow(time, ready ? seek : null);
  const runs = playing.value;
  const pace = speed.value;
  useEffect(() => {
    const video = element.current;
    if (video === null || !ready) return;
    video.playbackRate = Math.min(16, Math.max(0.0625, pace));
    // A browser may refuse to play; then it is sought from picture to picture, which is enough.
    if (runs) video.play().catch(() => video.pause());
    else video.pause();
  }, [runs, pace, ready]);
  if (fault !== null) return <MissingBox missing={{ missing: "corrupt", why: fault }} what="video" />;
  return (
    <div class="stage-canvas">
      <video
        ref={element}
        class="stage-video"
        src={address ?? undefined}
        muted
        playsInline
        preload="auto"
        disablePictureInPicture
        aria-label="Video at the playhead"
        onLoadedData={() => setReady(true)}
        onError={() => setFault("this browser does not play it")}
      />
    </div>
  );
}
