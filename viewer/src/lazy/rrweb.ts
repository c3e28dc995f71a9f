/** The DOM replayer, loaded when rrweb events are first shown. It draws into a frame that runs no scripts. */
import { Replayer } from "@rrweb/replay";
import css from "@rrweb/replay/dist/style.css?inline";

export interface DomPlayer {
  /** `ms` from the first event. */
  seek(ms: number): void;
  size(): { width: number; height: number };
  dispose(): void;
}

let styled = false;

/** Shows `events` (sorted, at least two, the first snapshot whole) in `element`, paused. It moves only by `seek`. */
export function mountReplay(element: HTMLElement, events: unknown[]): DomPlayer {
  if (!styled) {
    const style = document.createElement("style");
    style.textContent = css;
    document.head.append(style);
    styled = true;
  }
  const replayer = new Replayer(events as ConstructorParameters<typeof Replayer>[0], {
    root: element,
    mouseTail: false,
    showWarning: false,
    showDebug: false,
    skipInactive: false,
    triggerFocus: false,
    useVirtualDom: true,
    UNSAFE_replayCanvas: false,
  });
  replayer.disableInteract();
  replayer.iframe.title = "DOM replay";
  return {
    seek: (ms) => replayer.pause(ms),
    size: () => ({
      width: replayer.iframe.width ? Number(replayer.iframe.width) : 0,
      height: Number(replayer.iframe.height) || 0,
    }),
    dispose: () => replayer.destroy(),
  };
}
