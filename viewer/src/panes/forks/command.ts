/** The command that forks a run, for those who type it themselves. */

/** `worldline fork <run> --at step:9 --set model=other -- python agent.py` */
export function forkCommand(
  run: string,
  step: number,
  set: Readonly<Record<string, string>>,
  agent: readonly string[],
): string {
  const words = ["worldline", "fork", run, "--at", `step:${step}`];
  for (const [key, value] of Object.entries(set)) words.push("--set", `${key}=${value}`);
  // What has to be run is only known where the recording was made of a command.
  words.push("--", ...(agent.length > 0 ? agent : ["python", "agent.py"]));
  return words.map(quoted).join(" ");
}

/** A word as a POSIX shell reads it: bare where it can be. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The words of the command that the recording's header names. */
export function agentWords(header: Record<string, unknown>): string[] {
  const agent = header["agent"];
  const command = typeof agent === "object" && agent !== null ? (agent as { command?: unknown }).command : undefined;
  return Array.isArray(command) ? command.filter((word): word is string => typeof word === "string") : [];
}
