/**
 * Entries of a bundle, read whole and looked at: its header, the digest of what is stored, its size when inflated.
 */
import { type Container, type Entry, isHeaderOf } from "./container";
import { inflate } from "./inflate";
import { digest } from "./sha256";
import type { BlobRef, Bytes, Missing } from "./types";
import { inWords, Unreadable } from "./unreadable";

export const MOST_CONTENT = 256 << 20;

export class Entries {
  private resources: Map<string, Entry> | null = null;
  private removed: Promise<Map<string, number>> | null = null;

  constructor(
    readonly bytes: Bytes,
    readonly container: Container,
  ) {}

  get(name: string): Entry | undefined {
    return this.container.entries.get(name);
  }

  /** The content of an entry. Rejects with `Unreadable` where it is not what was packed. */
  async read(entry: Entry, most = MOST_CONTENT): Promise<Uint8Array> {
    if (entry.size > most || entry.stored > most)
      throw new Unreadable("too-large", `${entry.name} has ${entry.size} bytes`);
    const all = await this.bytes.read(entry.at, entry.begins - entry.at + entry.stored);
    const header = all.subarray(0, entry.begins - entry.at),
      stored = all.subarray(entry.begins - entry.at);
    if (!this.container.newer && !isHeaderOf(entry, header))
      throw new Unreadable("damaged", `${entry.name}: its header is not its own`, "", entry.at);
    if ((await digest(stored)) !== entry.sha256)
      throw new Unreadable("damaged", `${entry.name}: not the bytes that were packed`, "", entry.begins);
    if (entry.method !== 0) return inflate(stored, entry.size, entry.name);
    if (entry.size !== entry.stored)
      throw new Unreadable("damaged", `${entry.name}: stored, and of another size`, "", entry.at);
    return stored;
  }

  async text(name: string, most: number): Promise<string | null> {
    const entry = this.get(name);
    return entry ? new TextDecoder().decode(await this.read(entry, most)) : null;
  }

  /** The bytes of a content, or why they are not here. */
  async content(ref: BlobRef): Promise<Uint8Array | Missing> {
    const entry = this.entryOf(ref.name);
    if (!entry) return this.absent(ref);
    try {
      const data = await this.read(entry);
      // The name of an ordinary content is its digest; that of a restricted one is keyed, and speaks for itself only then.
      if (ref.tier === "ordinary" && (await digest(data)) !== ref.name)
        return { missing: "corrupt", why: "not the bytes that were recorded" };
      return data;
    } catch (error) {
      if (error instanceof Unreadable && error.why !== "damaged" && error.why !== "too-large") throw error;
      return { missing: "corrupt", why: inWords(error) };
    }
  }

  entryOf(name: string): Entry | undefined {
    if (!this.resources) {
      this.resources = new Map();
      for (const entry of this.container.entries.values())
        if (entry.name.startsWith("resources/")) this.resources.set(entry.name.slice(10, 74), entry);
    }
    return this.resources.get(name);
  }

  /** How many contents were removed behind their retention. */
  async expired(): Promise<number> {
    this.removed ??= this.removals();
    return (await this.removed).size;
  }

  private async absent(ref: BlobRef): Promise<Missing> {
    if (this.container.withheld.has(ref.name))
      return { missing: "withheld", why: "left out when this bundle was packed" };
    this.removed ??= this.removals();
    const at = (await this.removed).get(ref.name);
    if (at !== undefined)
      return {
        missing: "expired",
        why: `removed on ${new Date(at / 1e6).toISOString().slice(0, 10)}, when its retention was over`,
      };
    return { missing: "lost", why: "it is not in the bundle, and nothing says why" };
  }

  private async removals(): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    for (const line of ((await this.text("expiry.jsonl", 64 << 20)) ?? "").split("\n")) {
      try {
        const { name, at } = JSON.parse(line) as { name: unknown; at: unknown };
        if (typeof name === "string" && typeof at === "number") found.set(name, at);
      } catch {
        break; // a line that was cut authorises nothing, nor does what stands behind it
      }
    }
    return found;
  }
}
