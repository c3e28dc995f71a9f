/** The page's own server: what is asked of it goes through here, and what it answers badly is said in one form. */

/** The server could not be reached, or refused. `status` is 0 where nothing answered. */
export class ServerError extends Error {
  constructor(
    readonly what: string,
    readonly status: number,
    readonly answer: string,
  ) {
    super(
      status === 0
        ? `${what}: nothing answered. Is \`worldline view\` still running?`
        : `${what}: the server answered ${status}${answer === "" ? "" : `, ${answer}`}.`,
    );
    this.name = "ServerError";
  }
}

export async function get<T>(path: string, abort?: AbortSignal): Promise<T> {
  return (await ask(path, abort ? { signal: abort } : {})).json() as Promise<T>;
}

export async function post<T = unknown>(path: string, body: unknown): Promise<T> {
  const answer = await ask(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Worldline": "1" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  return (text === "" ? null : JSON.parse(text)) as T;
}

/** The page asked for its session before the app was there (`tools/boot.js`). That answer counts once. */
function early(path: string): Promise<Response> | undefined {
  const page = globalThis as { __session?: Promise<Response> };
  const asked = path === "api/session" ? page.__session : undefined;
  if (asked) delete page.__session;
  return asked;
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  const what = `${init.method ?? "GET"} ${path}`;
  let answer: Response;
  try {
    answer = await (early(path) ?? fetch(path, { ...init, credentials: "same-origin", cache: "no-store" }));
  } catch (reason) {
    if (reason instanceof DOMException && reason.name === "AbortError") throw reason;
    throw new ServerError(what, 0, "");
  }
  if (!answer.ok) throw new ServerError(what, answer.status, wordsOf(await answer.text()));
  return answer;
}

/** What the server says in a refusal: its words, and what to do; or the answer as it came. */
export function wordsOf(answer: string): string {
  let said: unknown;
  try {
    said = JSON.parse(answer);
  } catch {
    return answer.slice(0, 200);
  }
  const { what, why, todo } = (said ?? {}) as { what?: unknown; why?: unknown; todo?: unknown };
  const words = [what ?? why, todo].filter((part) => typeof part === "string" && part !== "");
  return words.length > 0 ? words.join(" ").slice(0, 600) : answer.slice(0, 200);
}
