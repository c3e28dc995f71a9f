/** The terminal player, loaded when a cast is first shown. It gets events that are read already and fetches nothing. */
import { create } from "asciinema-player";
import css from "asciinema-player/dist/bundle/asciinema-player.css?inline";

export interface CastData {
  columns: number;
  rows: number;
  events: [seconds: number, code: "o" | "r", data: string][];
}

export interface CastPlayer {
  seek(seconds: number): Promise<void>;
  dispose(): void;
}

let styled = false;

/** Shows `cast` in `element`, at its beginning and paused. It moves only by `seek`. */
export function mountCast(element: HTMLElement, cast: CastData): CastPlayer {
  if (!styled) {
    const style = document.createElement("style");
    style.textContent = css;
    document.head.append(style);
    styled = true;
  }
  // The player's own parsers give milliseconds, so ours does; its `seek` takes seconds.
  const events = cast.events.map(([seconds, code, data]): CastData["events"][number] => [seconds * 1e3, code, data]);
  const player = create({ data: () => [], parser: () => ({ cols: cast.columns, rows: cast.rows, events }) }, element, {
    controls: false,
    fit: "both",
    preload: true,
    autoPlay: false,
    cursorMode: "steady",
    theme: "asciinema",
    terminalFontFamily: "var(--mono)",
  });
  // Its keys would be a second playhead's; without focus it hears none.
  for (const focusable of element.querySelectorAll("[tabindex]")) focusable.removeAttribute("tabindex");
  return {
    seek: async (seconds) => {
      await player.seek(seconds);
    },
    dispose: () => player.dispose(),
  };
}
