/**
 * An answer while it is put together: stretches of text, reasoning and tool calls that grow by fragments.
 */
export type Kind = "text" | "reasoning" | "tool";
export type Runner = "client" | "provider" | "approval";

export interface ToolUse {
  id: string;
  name: string;
  arguments: string;
  runner: Runner;
}

export interface Usage {
  input: number | null;
  output: number | null;
}

/** One candidate of a token, as a provider's log probabilities list it. */
export interface Alternative {
  text: string;
  p: number;
  chosen: boolean;
}

/** One answer of a model, assembled. `text` is what the first choice says. */
export interface Answer {
  model: string | null;
  text: string;
  reasoning: string;
  calls: ToolUse[];
  finish: string[];
  usage: Usage | null;
  complete: boolean;
  error: string | null;
  alternatives: Alternative[];
}

export class Block {
  fallback = "";
  pieces: string[] = [];

  constructor(
    readonly kind: Kind,
    public id: string,
    public name: string,
    readonly runner: Runner,
  ) {}

  add(fragment: string): void {
    if (fragment) this.pieces.push(fragment);
  }

  /** The provider's final text in place of the fragments; an empty one changes nothing. */
  settle(text: string): void {
    if (text) this.pieces = [text];
  }
}

export class Assembly {
  model: string | null = null;
  finish = new Map<number, string>();
  counts: Record<string, unknown> = {};
  /** Tool calls of a dialect that numbers none: all, and those without an id by name. */
  calls = 0;
  called = new Map<string, number>();
  usage: Usage | null = null;
  ended = false;
  error: string | null = null;
  alternatives: Alternative[] = [];
  private blocks: Block[] = [];
  private open = new Map<string | number, Block>();

  /** The provider began a new message in the same stream. */
  restart(): void {
    Object.assign(this, new Assembly());
  }

  /** The block at `key`, begun here if it is new. A known key with another id begins a new one: some number all calls 0. */
  block(key: string | number, kind: Kind, id = "", name = "", runner: Runner = "client"): Block {
    let block = this.open.get(key);
    if (!block || (id && block.id && id !== block.id)) {
      block = new Block(kind, id, name, runner);
      this.open.set(key, block);
      this.blocks.push(block);
    }
    block.id ||= id;
    block.name ||= name;
    return block;
  }

  known(key: string | number): Block | undefined {
    return this.open.get(key);
  }

  /** The first error stays, since later ones are its consequences. */
  fail(error: string): void {
    this.error ||= error;
  }

  answer(): Answer {
    const said = (kind: Kind): string =>
      this.blocks
        .filter((block) => block.kind === kind)
        .map((block) => block.pieces.join(""))
        .join("");
    return {
      model: this.model,
      text: said("text"),
      reasoning: said("reasoning"),
      calls: this.blocks
        .filter((block) => block.kind === "tool")
        .map(({ id, name, pieces, runner }) => ({ id, name, arguments: pieces.join(""), runner })),
      finish: [...this.finish].sort(([a], [b]) => a - b).flatMap(([, reason]) => (reason ? [reason] : [])),
      usage: this.usage,
      complete: this.ended && this.error === null,
      error: this.error,
      alternatives: this.alternatives,
    };
  }
}
