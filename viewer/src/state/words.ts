/** Figures as a person reads them: durations, clocks, money, sizes, counts. Times are nanoseconds. */

const MS = 1e6;
const SECOND = 1e9;

/** "0.4 s", "30 s", "2 m 05 s", "13 h 04 m", "3 d 02 h"; below 10 ms "4 ms". */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "";
  const ms = Math.max(0, ns) / MS;
  if (ms < 1) return ms === 0 ? "0 s" : "< 1 ms";
  if (ms < 95) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)} d ${two(hours % 24)} h`;
}

/** "02:14:07.331": the time since the run began. */
export function clock(ns: number, digits: 0 | 3 = 3): string {
  const ms = Math.max(0, Math.floor(ns / MS));
  const seconds = Math.floor(ms / 1000);
  const base = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return digits === 0 ? base : `${base}.${String(ms % 1000).padStart(3, "0")}`;
}

/** The same for a screen reader: "2 hours 14 minutes 7 seconds". */
export function spokenTime(ns: number): string {
  const seconds = Math.floor(Math.max(0, ns) / SECOND);
  const parts: string[] = [];
  const say = (n: number, word: string): void => {
    if (n > 0) parts.push(`${n} ${word}${n === 1 ? "" : "s"}`);
  };
  say(Math.floor(seconds / 3600), "hour");
  say(Math.floor(seconds / 60) % 60, "minute");
  say(seconds % 60, "second");
  return parts.length > 0 ? parts.join(" ") : "0 seconds";
}

/** "1,204" below ten thousand, then "12.4k", "3.1M". */
export function count(n: number): string {
  if (n < 10_000) return grouped(n);
  if (n < 1e6) return `${trimmed(n / 1e3)}k`;
  if (n < 1e9) return `${trimmed(n / 1e6)}M`;
  return `${trimmed(n / 1e9)}G`;
}

export function grouped(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  if (n < 1e6) return `${trimmed(n / 1e3)} kB`;
  if (n < 1e9) return `${trimmed(n / 1e6)} MB`;
  return `${trimmed(n / 1e9)} GB`;
}

export function money(dollars: number): string {
  if (dollars > 0 && dollars < 0.01) return "< $0.01";
  return `$${dollars.toFixed(2)}`;
}

export function plural(n: number, word: string, many = `${word}s`): string {
  return `${grouped(n)} ${n === 1 ? word : many}`;
}

function trimmed(n: number): string {
  return n < 100 ? n.toFixed(1).replace(/\.0$/, "") : String(Math.round(n));
}

function two(n: number): string {
  return String(n).padStart(2, "0");
}
