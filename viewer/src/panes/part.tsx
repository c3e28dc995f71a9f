/**
 * A pane whose code comes when it is first shown: the page carries it as a part of its own, and most sessions never need it.
 *
 * While it comes, nothing is drawn in its place; it is in the page already, so that takes a few milliseconds.
 */
import { signal } from "@preact/signals";
import type { JSX } from "preact";

type Pane<P> = (props: P) => JSX.Element | null;

/** `part(async () => (await import("./compare")).Compare)`: the same pane, loaded once; `waiting` stands there until then. */
export function part<P extends object>(load: () => Promise<Pane<P>>, waiting: JSX.Element | null = null): Pane<P> {
  const loaded = signal<Pane<P> | null>(null);
  const failed = signal("");
  let asked = false;
  return (props) => {
    if (!asked) {
      asked = true;
      load().then(
        (pane) => (loaded.value = pane),
        (reason: unknown) => (failed.value = String(reason)),
      );
    }
    if (failed.value !== "")
      return (
        <p class="card is-failed" role="alert">
          This part of the page could not be loaded: {failed.value}
        </p>
      );
    const Loaded = loaded.value;
    return Loaded === null ? waiting : <Loaded {...props} />;
  };
}
