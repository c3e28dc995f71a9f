/** The bar above the timeline: where its window lies, the keys of a player, the clock, and whether a live run is followed. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import "../../style/transport.css";
import {
  folded,
  following,
  liveState,
  outline,
  playhead,
  playing,
  skipIdle,
  speed,
  step,
  unseen,
  version,
} from "../../state/app";
import { first, last, moveBy, toLive } from "../../state/moves";
import { clock, count, plural } from "../../state/words";
import { Icon, type IconName } from "../icons";
import { toggleFold } from "../timeline/camera";
import { Crumbs } from "./crumbs";
import { SPEEDS, startFollowing, startPlayback } from "./playback";
import { stepNumber } from "../../state/numbers";

export function Transport(): JSX.Element {
  useEffect(startPlayback, []);
  useEffect(startFollowing, []);
  return (
    <div class="transport bar" role="toolbar" aria-label="Playback">
      <Crumbs />
      <div class="player">
        <Key icon="first" label="First step" keys="Home" onPress={first} />
        <Key icon="previous" label="Step before" keys="K" onPress={() => moveBy(-1)} />
        <PlayKey />
        <Key icon="next" label="Next step" keys="J" onPress={() => moveBy(1)} />
        <Key icon="last" label="Last step" keys="End" onPress={last} />
        <label class="speed">
          <span class="unseen">Speed</span>
          <select value={String(speed.value)} onChange={(event) => (speed.value = Number(event.currentTarget.value))}>
            {SPEEDS.map((times) => (
              <option key={times} value={String(times)}>
                {times}×
              </option>
            ))}
          </select>
        </label>
        <Switch
          icon="skip"
          label="skip idle"
          title="Playing leaves out pauses of more than 5 s"
          on={skipIdle.value}
          flip={() => (skipIdle.value = !skipIdle.value)}
        />
        <Switch
          icon="fold"
          label="fold gaps"
          title="Pauses of more than 5 s take a fixed width ( X )"
          on={folded.value}
          flip={toggleFold}
        />
      </div>
      <div class="when">
        <Clock />
        <Live />
      </div>
    </div>
  );
}

function Key({
  icon,
  label,
  keys,
  onPress,
}: {
  icon: IconName;
  label: string;
  keys: string;
  onPress: () => void;
}): JSX.Element {
  return (
    <button
      type="button"
      class="button plain square"
      aria-label={label}
      title={`${label} ( ${keys} )`}
      onClick={onPress}
    >
      <Icon name={icon} />
    </button>
  );
}

function PlayKey(): JSX.Element {
  const on = playing.value;
  const label = on ? "Pause" : "Play";
  return (
    <button
      type="button"
      class="play"
      aria-label={label}
      title={`${label} ( Space )`}
      disabled={following.value}
      onClick={() => (playing.value = !on)}
    >
      <Icon name={on ? "pause" : "play"} />
    </button>
  );
}

function Switch({
  icon,
  label,
  title,
  on,
  flip,
}: {
  icon: IconName;
  label: string;
  title: string;
  on: boolean;
  flip: () => void;
}): JSX.Element {
  return (
    <button type="button" class="switch" role="switch" aria-checked={on} title={title} onClick={flip}>
      <Icon name={icon} />
      <span class="word">{label}</span>
    </button>
  );
}

function Clock(): JSX.Element | null {
  const now = outline.value;
  void version.value;
  if (now === null) return null;
  const steps = now.steps.length;
  return (
    <>
      <time class="mono" role="timer">
        {clock(playhead.value)}
      </time>
      <span class="muted where">
        {steps === 0 ? "no steps" : `step ${stepNumber(step.value)} of ${stepNumber(steps - 1)}`}
      </span>
    </>
  );
}

/** A run that still grows: followed, or left behind with the count of what came since. */
function Live(): JSX.Element | null {
  const state = liveState.value;
  if (state === "off") return null;
  if (state === "ended" && following.value) return <span class="live pill ended">ended</span>;
  if (following.value) {
    return (
      <span class={`live pill ${state === "stalled" ? "stalled" : "on"}`} role="status">
        <Icon name={state === "stalled" ? "warning" : "live"} />{" "}
        {state === "stalled" ? "stalled: nothing comes" : "LIVE"}
      </span>
    );
  }
  const words = unseen.value > 0 ? `${count(unseen.value)} new` : state === "ended" ? "ended" : "paused";
  return (
    <button
      type="button"
      class={`live pill ${unseen.value > 0 ? "new" : "paused"}`}
      onClick={toLive}
      title={`${plural(unseen.value, "row")} came since you moved. To now, and on with it ( L )`}
    >
      <Icon name="live" /> {state === "stalled" ? "stalled · " : ""}
      {words}
    </button>
  );
}
