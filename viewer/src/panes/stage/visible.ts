/** Characters of recorded text that would act on the text around them, as characters that only say what they are. */

/** Control pictures for C0 and C1, and the code in words for what reorders or hides text around it. */
export function visible(code: number): string {
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  const reorders =
    (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code === 0x200e || code === 0x200f;
  const hides = (code >= 0x80 && code <= 0x9f) || code === 0x2028 || code === 0x2029 || code === 0xfeff;
  const lone = code >= 0xd800 && code <= 0xdfff;
  if (reorders || hides || lone) return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  return String.fromCodePoint(code);
}
