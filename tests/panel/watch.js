// What `tests/panel/panel.py` reads: what shifted without a hand of the user, and strokes on the timeline's canvases. It
// stands in the page before any script of it, and only in the page: in a sandboxed frame (a DOM snapshot), whose layout may
// shift while it loads, Chromium would say on the console that it kept this observer from running.
if (window === window.top) {
  window.__shifts = [];
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) {
      if (shift.hadRecentInput) continue;
      const moved = shift.sources.map(({ node }) => (node?.parentElement ?? node)?.className ?? "?");
      window.__shifts.push(`${shift.value}: ${moved.join(", ")}`);
    }
  }).observe({ type: "layout-shift", buffered: true });
  window.__drawn = 0;
  for (const name of ["clearRect", "fillRect", "stroke", "fill", "drawImage", "putImageData", "fillText"]) {
    const own = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function (...rest) {
      if (this.canvas.closest?.(".timeline")) window.__drawn++;
      return own.apply(this, rest);
    };
  }
}
