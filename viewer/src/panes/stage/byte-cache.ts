/**
 * A cache that is bounded by what its entries weigh, not by how many they are: the least recently used go first.
 *
 * Decoded pictures weigh megabytes each; a bound by number would be wrong by a factor of a thousand.
 */
export class ByteCache<T> {
  private readonly entries = new Map<string, { value: T; bytes: number }>();
  private held = 0;

  constructor(
    readonly limit: number,
    private readonly drop: (value: T) => void = () => {},
  ) {}

  get bytes(): number {
    return this.held;
  }

  get size(): number {
    return this.entries.size;
  }

  has(key: string): boolean {
    return this.entries.has(key);
  }

  get(key: string): T | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.value;
  }

  /** Keeps `value`, and the newest even where it alone is over the bound: who asked for it is about to draw it. */
  put(key: string, value: T, bytes: number): void {
    this.remove(key);
    this.entries.set(key, { value, bytes });
    this.held += bytes;
    for (const oldest of this.entries.keys()) {
      if (this.held <= this.limit || this.entries.size === 1) break;
      this.remove(oldest);
    }
  }

  clear(): void {
    for (const key of [...this.entries.keys()]) this.remove(key);
  }

  private remove(key: string): void {
    const entry = this.entries.get(key);
    if (entry === undefined) return;
    this.entries.delete(key);
    this.held -= entry.bytes;
    this.drop(entry.value);
  }
}
