/**
 * The data of server-sent events, by the rules of the HTML standard: lines end with LF, CR LF or CR, nothing else; an
 * event that no empty line ends is never given out.
 */
export function* events(text: string): Generator<string> {
  // Most streams have one data line in each event and LF alone.
  const plain = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  let data: string[] = [];
  for (let at = 0; at < plain.length;) {
    const end = plain.indexOf("\n", at);
    if (end < 0) return;
    if (end === at) {
      if (data.length > 0) yield data.join("\n");
      data = [];
    } else if (plain.startsWith("data", at)) {
      const line = plain.slice(at, end);
      if (line === "data") data.push("");
      else if (line[4] === ":") data.push(line.slice(line[5] === " " ? 6 : 5));
    }
    at = end + 1;
  }
}
