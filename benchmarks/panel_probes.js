// What `benchmarks/panel_page.py` reads: when the first row of the step list was drawn, strokes on the timeline, when the
// stage drew a picture, and the frames behind moves of the mouse. It stands in the page before any script of it.
window.__probe = { rows: 0, drawn: 0, picture: 0, clicked: 0, hit: 0, frames: [] };
/** Behind the next frame: the frame's own work is done when the message comes. */
const behindFrame = (then) =>
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = then;
    channel.port2.postMessage(0);
  });
new MutationObserver((_, watch) => {
  if (!document.querySelector("[role=listbox] [role=option]")) return;
  watch.disconnect();
  behindFrame(() => (__probe.rows = performance.now()));
}).observe(document, { childList: true, subtree: true });
for (const name of ["clearRect", "fillRect", "stroke", "fill", "drawImage", "putImageData", "fillText"]) {
  const own = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...rest) {
    if (this.canvas.closest?.(".timeline")) __probe.drawn++;
    // The small picture that stands in while the next one is read is no full one.
    if (name === "drawImage" && rest[0].width > 320 && this.canvas.closest?.("#stage-panel"))
      __probe.picture = performance.now();
    return own.apply(this, rest);
  };
}
addEventListener("pointermove", (event) => {
  if (event.buttons) behindFrame(() => __probe.frames.push(performance.now() - event.timeStamp));
}, { capture: true });
addEventListener("pointerdown", (event) => {
  __probe.clicked = event.timeStamp;
  __probe.picture = 0;
}, { capture: true });
/** From the next key to the first hit that was not there before it. */
window.__untilHit = () => {
  __probe.hit = 0;
  const search = document.querySelector("[data-testid=search]");
  addEventListener("keydown", (event) => {
    new MutationObserver((_, watch) => {
      if (!search.querySelector("[role=option]")) return;
      watch.disconnect();
      __probe.hit = performance.now() - event.timeStamp;
    }).observe(search, { childList: true, subtree: true, characterData: true });
  }, { once: true, capture: true });
};
