/**
 * The digest over everything that the built page is made of, so that a page can be told from the sources beside it.
 *
 * It is the SHA-256 of a text with one line for each file, sorted by path: its SHA-256 in hex, two spaces, its path from
 * `viewer/` with `/`. `checks/panel.py` makes the same without node.
 */
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const SINGLE = ["index.html", "package-lock.json", "tsconfig.json", "vite.config.ts"];
const FOLDERS = ["src", "tools"];

const sha256 = (data) => createHash("sha256").update(data).digest("hex");

export function sourcesDigest(root) {
  const within = FOLDERS.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(root.length + 1)
          .replaceAll("\\", "/"),
      ),
  );
  // By code units: names are ASCII, so this is the order of their bytes.
  const paths = [...SINGLE, ...within].sort((a, b) => (a < b ? -1 : 1));
  return sha256(paths.map((path) => `${sha256(readFileSync(join(root, path)))}  ${path}\n`).join(""));
}
