/** Waiting for the page's frames. A page in the background has none, and what waits for them goes on all the same. */

export function nextFrame(then: () => void): void {
  if (typeof requestAnimationFrame === "function" && !document.hidden) requestAnimationFrame(then);
  else setTimeout(then, 16);
}

/** When the next frame stands on the screen. */
export function behindFrame(then: () => void): void {
  nextFrame(() => setTimeout(then));
}
