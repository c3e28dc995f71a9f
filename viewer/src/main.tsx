/** The page's first line: put the shell into it. Everything else is the shell's. */
import { render } from "preact";
import { Shell } from "./panes/shell";

const root = document.getElementById("app");
if (root) render(<Shell />, root);
