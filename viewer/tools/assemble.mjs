/**
 * Build the panel into one page: `node tools/assemble.mjs [--check]`.
 *
 * The app is built into a main part and those that it imports when they are needed; `src/core/worker.ts` and every
 * `src/lazy/<name>.ts` become parts that stand alone. All stand in the page deflated, in base64. `tools/boot.js` runs them;
 * the page's policy names the digest of that script, so no other one runs. The same sources give the same bytes; `--check`
 * builds and compares instead of writing.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateRawSync, gzipSync, inflateRawSync } from "node:zlib";
import { build } from "vite";
import { sourcesDigest } from "./sources.mjs";

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const PAGE = resolve(ROOT, "../src/worldline/view/viewer.html");
const APP_BUDGET = 80 * 1000;
const ENTRY = '<script type="module" src="/src/main.tsx"></script>\n';

/**
 * What the first screen needs stands together in one part, and nothing else in it. The bundler's own division mixes in what
 * is shared with parts that come later.
 */
const TOGETHER = { includeDependenciesRecursively: false, groups: [{ name: "app", tags: ["$initial"] }] };

/** In `boot.js`, which has no text that looks like one. */
const COMMENT = /\/\*[^]*?\*\/\n|[ ]*\/\/ [^\n]*(?=\n)/g;

const PART = /^[a-zA-Z0-9_-]+$/;

/** The modules that an entry is built into, and the styles that it brought. */
async function built(entry, output, exported = "strict") {
  const results = await build({
    root: ROOT,
    configFile: join(ROOT, "vite.config.ts"),
    logLevel: "warn",
    build: {
      write: false,
      rolldownOptions: {
        input: join(ROOT, entry),
        preserveEntrySignatures: exported,
        output: { entryFileNames: "[name].js", chunkFileNames: "[name].js", ...output },
      },
    },
  });
  const outputs = [results].flat().flatMap((result) => result.output);
  const styles = outputs.filter((file) => file.type === "asset" && file.fileName.endsWith(".css"));
  const others = outputs.filter((file) => file.type === "asset" && !file.fileName.endsWith(".css"));
  if (others.length > 0)
    throw new Error(`${entry}: files that a page cannot have: ${others.map((file) => file.fileName).join(", ")}`);
  return {
    modules: outputs.filter((file) => file.type === "chunk"),
    css: styles
      .map((style) => String(style.source))
      .join("\n")
      .trim(),
  };
}

/** One module without imports. Styles have to be imported with ?inline, so that they come with it. */
async function alone(entry, format) {
  const { modules, css } = await built(entry, { codeSplitting: false, format });
  if (modules.length !== 1 || css) throw new Error(`${entry}: one module and no styles were due`);
  return modules[0].code.trim();
}

const nameOf = (fileName) => fileName.replace(/\.js$/, "");

/** A module whose imports of others go by the names of parts. */
function linked({ code, fileName, imports, dynamicImports }) {
  let found = 0;
  const static_ = code
    .trim()
    .replaceAll(
      /\b(from|import)\s*(["'])\.\/([\w-]+)\.js\2/g,
      (_, word, __, name) => (found++, `${word}"part:${name}"`),
    );
  const all = static_.replaceAll(
    /\bimport\((["'`])\.\/([\w-]+)\.js\1\)/g,
    (_, __, name) => (found++, `globalThis.__part("${name}")`),
  );
  if (found < imports.length + dynamicImports.length)
    throw new Error(`${fileName}: an import that could not be linked`);
  return all;
}

/** What HTML would read as the end of a script, spelled so that it does not. In JavaScript both mean the same. */
const inScript = (code) => code.replaceAll(/<\/(script)/gi, "<\\/$1").replaceAll("<!--", "<\\!--");

function policy(code) {
  const digest = createHash("sha256").update(code).digest("base64");
  return [
    "default-src 'none'",
    `script-src 'sha256-${digest}' blob: 'wasm-unsafe-eval'`,
    "style-src 'unsafe-inline'",
    "img-src blob: data:",
    "media-src blob:",
    "font-src data:",
    "worker-src blob:",
    "frame-src blob: data:",
    "connect-src 'self' http: https:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

const gzipped = (text) => gzipSync(text, { level: 9 }).length;

/** The parts that the first screen needs: the main one, and what that imports. */
function atFirst(modules) {
  const found = new Set(),
    open = modules.filter((module) => module.isEntry);
  for (let module = open.pop(); module; module = open.pop()) {
    if (found.has(nameOf(module.fileName))) continue;
    found.add(nameOf(module.fileName));
    open.push(...modules.filter((other) => module.imports.includes(other.fileName)));
  }
  return [...found];
}

async function assembled() {
  const { modules, css } = await built("src/main.tsx", { format: "es", codeSplitting: TOGETHER }, false);
  const parts = new Map(modules.map((module) => [nameOf(module.fileName), linked(module)]));
  parts.set("worker", await alone("src/core/worker.ts", "iife"));
  const lazy = readdirSync(join(ROOT, "src/lazy")).filter((name) => /^[a-z]+\.ts$/.test(name));
  for (const file of lazy) parts.set(`lazy-${file.slice(0, -3)}`, await alone(`src/lazy/${file}`, "es"));
  const names = [...parts.keys()].sort();
  if (!names.every((name) => PART.test(name))) throw new Error(`a part's name is no name: ${names.join(", ")}`);
  const boot = `\n${readFileSync(join(ROOT, "tools/boot.js"), "utf-8").replaceAll(COMMENT, "")}`;
  if (inScript(boot) !== boot || /[\r\0]/.test(boot)) throw new Error("boot.js: HTML would change it");
  const head = [
    `<meta http-equiv="Content-Security-Policy" content="${policy(boot)}">`,
    `<meta name="worldline-sources" content="${sourcesDigest(ROOT)}">`,
    `<style>\n${css.replaceAll(/<\/(style)/gi, "<\\/$1")}\n</style>`,
    "<!--worldline:head-->",
  ].join("\n");
  const first = atFirst(modules).sort();
  const deflated = (wanted) =>
    names
      .filter((name) => wanted === (first.includes(name) || name === "worker"))
      .map(
        (name) =>
          `<script type="text/plain" data-lazy="${name}">${deflateRawSync(parts.get(name), { level: 9 }).toString("base64")}</script>\n`,
      )
      .join("");
  // `async`: it runs as soon as it is there, while the other parts and a one-file page's recording still come in behind it.
  const body = `${deflated(true)}<script type="module" async>${boot}</script>\n${deflated(false)}`;
  const template = readFileSync(join(ROOT, "index.html"), "utf-8");
  for (const mark of ["<!--worldline:head-->", "<!--worldline:chunks-->", ENTRY])
    if (template.split(mark).length !== 2) throw new Error(`index.html: ${mark.trim()} is due there once`);
  const page = template.replace("<!--worldline:head-->", () => head).replace(ENTRY, () => body);
  for (const mark of ["<!--worldline:head-->", "<!--worldline:chunks-->"])
    if (page.split(mark).length !== 2) throw new Error(`the built page has ${mark} more than once`);
  const sizes = names.map((name) => [name, gzipped(parts.get(name))]).sort((a, b) => b[1] - a[1]);
  const app = gzipped(first.map((name) => parts.get(name)).join("\n")) + gzipped(css);
  return {
    page,
    app,
    sizes: [["styles", gzipped(css)], ...sizes].map(([name, bytes]) => [
      first.includes(name) ? `${name} (at first)` : name,
      bytes,
    ]),
  };
}

/** The page with its lazy parts as text: what deflate makes of them may differ between versions of zlib. */
const inflated = (page) =>
  page.replaceAll(
    /(data-lazy="[a-zA-Z0-9_-]+">)([A-Za-z0-9+/=]*)/g,
    (_, mark, data) =>
      `${mark}${createHash("sha256")
        .update(inflateRawSync(Buffer.from(data, "base64")))
        .digest("hex")}`,
  );

const { page, app, sizes } = await assembled();
const size = `${(page.length / 1000).toFixed(0)} kB, of it the app ${(app / 1000).toFixed(1)} kB gzipped`;
if (!process.argv.includes("--check")) {
  mkdirSync(dirname(PAGE), { recursive: true });
  writeFileSync(PAGE, page);
  console.log(
    `viewer.html: ${size}\n${sizes.map(([name, bytes]) => `  ${(bytes / 1000).toFixed(1).padStart(6)} kB  ${name}`).join("\n")}`,
  );
} else {
  const kept = readFileSync(PAGE, "utf-8");
  const same =
    kept === page
      ? "byte for byte"
      : inflated(kept) === inflated(page)
        ? "but for what zlib made of the lazy parts"
        : "";
  console.log(
    same
      ? `viewer.html is what its sources make, ${same}: ${size}`
      : "viewer.html is not what its sources make: run make viewer",
  );
  process.exitCode = same ? 0 : 1;
}
if (app > APP_BUDGET)
  console.error(`warning: what the first screen needs has ${app} bytes gzipped, ${APP_BUDGET} are its budget`);
