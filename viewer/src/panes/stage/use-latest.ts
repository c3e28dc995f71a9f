/**
 * What the stage shows while the next thing is still being read: the last one. Nothing in the stage ever blanks for
 * that.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Latest<T> {
  /** The newest that was loaded, of `key` or, while that comes, of the key before. Null before the first. */
  value: T | null;
  /** Whether it is the one of `key`. */
  fresh: boolean;
  /** Why `key` could not be read. */
  error: string | null;
}

/**
 * Loads for `key`, and drops what comes for keys that are no longer asked for. A null key loads nothing and keeps what
 * is there. Another `owner` (a run) forgets what was there: a stranger's picture is no last picture.
 */
export function useLatest<T>(owner: object | null, key: string | null, load: () => Promise<T>): Latest<T> {
  const [state, setState] = useState<{
    owner: object | null;
    key: string | null;
    value: T | null;
    error: string | null;
  }>({
    owner: null,
    key: null,
    value: null,
    error: null,
  });
  const asked = useRef<string | null>(null);
  // Begun before the frame is drawn, not behind it: what is read comes in while the page is busy with the rest.
  useLayoutEffect(() => {
    if (key === null || owner === null) return;
    let wanted = true;
    asked.current = key;
    load().then(
      (value) => {
        if (wanted) setState({ owner, key, value, error: null });
      },
      (error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        if (wanted) setState((last) => ({ owner, key, value: last.owner === owner ? last.value : null, error: why }));
      },
    );
    return () => {
      wanted = false;
    };
  }, [owner, key]);
  const own = state.owner === owner;
  const fresh = own && state.key === key;
  return { value: own ? state.value : null, fresh, error: fresh ? state.error : null };
}
