/** Opening the runs that a branch left, one after the other: behind its own first rows, and judged as they are. */
import { leftOf, older } from "./ancestry";
import { version, type Open } from "./app";
import { baseOf, openSource } from "./reading";
import { get } from "./server";

const DEEPEST = 64;

/** Tells `older` what is there; `ends` gets what ends it, and `wanted` says whether anybody still waits. */
export async function climb(open: Open, ends: (() => void)[], wanted: () => boolean): Promise<void> {
  const parts: Open[] = [];
  const tell = (missing = ""): void => {
    if (wanted()) older.value = { of: open, parts: [...parts], missing };
  };
  let last = open;
  for (let left = leftOf(open); left !== null && left.step > 0 && parts.length < DEEPEST; left = leftOf(last)) {
    try {
      if (!(await isThere(last, left.run))) return tell(`${left.run} is not in this store`);
      const { open: part, stop } = await openSource(
        { served: left.run },
        {
          changed: () => {
            if (wanted()) version.value++;
          },
          grew: () => undefined,
          state: () => undefined,
        },
      );
      if (!wanted()) return stop();
      ends.push(stop);
      parts.push(part);
      last = part;
      tell();
      if (leftOf(part) === null) return;
      await based(part);
    } catch (reason) {
      return tell(reason instanceof Error ? reason.message : String(reason));
    }
  }
}

/** Asked of the family first: an address behind which nothing stands is an error on the console. */
async function isThere(of: Open, id: string): Promise<boolean> {
  const { nodes } = await get<{ nodes?: { run?: unknown }[] }>(`${of.server ?? baseOf(id)}tree`);
  return Array.isArray(nodes) && nodes.some((node) => node.run === id);
}

/** Until its first rows say with which number its steps begin. */
function based(part: Open): Promise<void> {
  return new Promise((resolve) => {
    const stop = version.subscribe(() => {
      if (part.outline.version === 0) return;
      queueMicrotask(() => stop());
      resolve();
    });
  });
}
