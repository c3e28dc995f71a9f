/**
 * How the panel is built: one module without chunks, since the page is one file. `tools/assemble.mjs` calls this once
 * for the app and once for every lazy part, and puts the results into the page.
 */
import { defineConfig } from "vite";

/** Parts bring no styles and no modules of their own along, so what would load these ahead of them has nothing to do. */
const nothingAhead = {
  name: "nothing-ahead",
  enforce: "pre" as const,
  load: (id: string) => (id.includes("vite/preload-helper") ? "export const __vitePreload = (load) => load();" : null),
};

export default defineConfig({
  plugins: [nothingAhead],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  // Where modules are requested from in the page has no meaning in one file, and no polyfill is needed for it.
  build: {
    target: "es2023",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1 << 20,
    reportCompressedSize: false,
  },
  server: { host: "127.0.0.1" },
  test: {
    include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"],
    environment: "node",
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
} as Parameters<typeof defineConfig>[0]);
