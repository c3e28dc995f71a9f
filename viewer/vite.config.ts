/**
 * How the panel is built: one module without chunks, since the page is one file. `tools/assemble.mjs` calls this once
 * for the app and once for every lazy part, and puts the results into the page.
 */
import { defineConfig } from "vite";

export default defineConfig({
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
