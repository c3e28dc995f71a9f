/**
 * A recorded HTML document made inert: what remains can be looked at and can do nothing.
 *
 * It is shown in `<iframe sandbox="">` below a CSP that allows inline styles and inline pictures only. Either of these
 * alone would do; this is the third: scripts, handlers, frames, forms' targets and every address that is no `data:`
 * picture are taken out of the parsed, inert document before it is written out again.
 */
import { ADDRESSES } from "../addresses";

export interface SafeDocument {
  html: string;
  removed: number;
  /** Whether the acted-on element was found. Null where nothing was looked for, or the selector is no CSS. */
  found: boolean | null;
  elements: number;
}

export interface Aim {
  selector: string | null;
  ref: string | null;
  role: string | null;
  name: string | null;
}

export const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/** Characters of HTML that are drawn without asking. */
export const HTML_CHARACTERS = 2_000_000;

const DROPPED = new Set([
  "script",
  "noscript",
  "iframe",
  "frame",
  "frameset",
  "object",
  "embed",
  "applet",
  "portal",
  "fencedframe",
  "link",
  "meta",
  "base",
  "audio",
  "video",
  "source",
  "track",
  "animate",
  "animatemotion",
  "animatetransform",
  "set",
]);
const PICTURES = new Set(["src", "href", "xlink:href", "poster"]);
/** An inline picture: pixels, or a vector picture that an <img> shows without running anything. */
const INLINE = /^data:image\/(?:png|jpeg|gif|webp|svg\+xml)[;,]/i;

const STYLE = `
:where(a[data-was-href]) { color: #0b5cad; text-decoration: underline; }
[data-acted] { outline: 3px solid #d6248f !important; outline-offset: 2px !important; scroll-initial-target: nearest;
  box-shadow: 0 0 0 6px #d6248f44 !important; }
[data-masked] { color: transparent !important;
  background: repeating-linear-gradient(45deg, #6a3fc055 0 4px, #ffffff 4px 8px) !important; }
`;

export function safeDocument(html: string, aim: Aim, mask: boolean): SafeDocument {
  const document = new DOMParser().parseFromString(html, "text/html");
  const { removed, elements } = clean(document);
  if (mask) maskFields(document);
  const found = highlight(document, aim);
  const head =
    document.head ??
    document.documentElement.insertBefore(document.createElement("head"), document.documentElement.firstChild);
  const style = document.createElement("style");
  style.textContent = STYLE;
  head.append(style);
  const charset = document.createElement("meta");
  charset.setAttribute("charset", "utf-8");
  const policy = document.createElement("meta");
  policy.setAttribute("http-equiv", "Content-Security-Policy");
  policy.setAttribute("content", POLICY);
  // First of all: a policy holds only for what comes behind it.
  head.prepend(policy, charset);
  return { html: `<!doctype html>${document.documentElement.outerHTML}`, removed, found, elements };
}

/** Takes out what acts. Templates hold documents of their own, which a browser may attach: they are cleaned alike. */
function clean(root: Document | DocumentFragment): { removed: number; elements: number } {
  let removed = 0;
  let elements = 0;
  for (const element of [...root.querySelectorAll("*")]) {
    elements += 1;
    if (DROPPED.has(element.localName.toLowerCase())) {
      element.remove();
      removed += 1;
      continue;
    }
    if (element.localName.toLowerCase() === "style") element.textContent = quietStyles(element.textContent ?? "");
    removed += cleanAttributes(element);
    const content = (element as Partial<HTMLTemplateElement>).content;
    if (element.localName === "template" && content) {
      const inner = clean(content);
      removed += inner.removed;
      elements += inner.elements;
    }
  }
  return { removed, elements };
}

/**
 * A sheet without what it would fetch. The policy refuses all of it in any spelling; this keeps the common ones from
 * being tried at all.
 */
export function quietStyles(css: string): string {
  return css
    .replace(/@import\b[^;]*;?/gi, "")
    .replace(/url\(\s*(?!['"]?data:image\/)(?:"[^"]*"|'[^']*'|[^)]*)\s*\)/gi, 'url("data:,")');
}

function cleanAttributes(element: Element): number {
  let removed = 0;
  const style = element.getAttribute("style");
  if (style !== null && /url|import/i.test(style)) element.setAttribute("style", quietStyles(style));
  for (const { name, value } of [...element.attributes]) {
    const lower = name.toLowerCase();
    if (lower.startsWith("on")) {
      element.removeAttribute(name);
      removed += 1;
      continue;
    }
    if (!ADDRESSES.has(lower)) continue;
    const picture = element.localName.toLowerCase() === "img" || element.localName.toLowerCase() === "image";
    if (picture && PICTURES.has(lower) && INLINE.test(value.trim())) continue;
    element.removeAttribute(name);
    // The place it led to stays readable and leads nowhere; it also keeps the look of a link.
    if (lower === "href") element.setAttribute("data-was-href", value.slice(0, 200));
    removed += 1;
  }
  return removed;
}

/** What was typed and chosen in fields. Their places stay, hatched. */
function maskFields(document: Document): void {
  for (const field of document.querySelectorAll("input, textarea, select, [contenteditable]")) {
    const type = (field.getAttribute("type") ?? "text").toLowerCase();
    if (field.localName === "input") {
      if (["button", "submit", "reset", "checkbox", "radio", "image"].includes(type)) continue;
      if ((field.getAttribute("value") ?? "") === "") continue;
      field.setAttribute("value", "masked");
    } else if (field.localName === "select") {
      for (const option of field.querySelectorAll("option")) option.removeAttribute("selected");
    } else {
      if ((field.textContent ?? "").trim() === "") continue;
      field.textContent = "masked";
    }
    field.setAttribute("data-masked", "");
  }
}

/** By selector, by ref where the page carries refs, by role and name last, as the action said them. */
function highlight(document: Document, aim: Aim): boolean | null {
  let asked = false;
  for (const selector of [aim.selector, aim.ref === null ? null : refSelector(aim.ref)]) {
    if (selector === null) continue;
    try {
      const element = document.querySelector(selector);
      asked = true;
      if (element !== null) return mark(element);
    } catch (error) {
      // A driver's own selector language (text=..., //xpath) is no CSS.
      if (!(error instanceof DOMException)) throw error;
    }
  }
  const named = aim.name === null ? null : byName(document, aim.role, aim.name);
  if (named !== null) return mark(named);
  return asked || aim.name !== null ? false : null;
}

function mark(element: Element): true {
  element.setAttribute("data-acted", "");
  return true;
}

function refSelector(ref: string): string {
  const quoted = `"${ref.replace(/["\\\n\r\f]/g, (character) => `\\${character.charCodeAt(0).toString(16)} `)}"`;
  return `[data-ref=${quoted}], [aria-ref=${quoted}]`;
}

/** Elements that have these roles without saying so (HTML-AAM); every other role has to be written. */
const NATIVE: Record<string, string> = {
  button: "button, input[type=button], input[type=submit], input[type=reset], summary",
  link: "a, area",
  heading: "h1, h2, h3, h4, h5, h6",
  textbox: "textarea, input",
  searchbox: "input",
  combobox: "select, input",
  listbox: "select",
  checkbox: "input[type=checkbox]",
  radio: "input[type=radio]",
  spinbutton: "input[type=number]",
  slider: "input[type=range]",
  option: "option",
  img: "img",
  row: "tr",
  cell: "td",
  columnheader: "th",
  listitem: "li",
  tab: "button, a",
};

function byName(document: Document, role: string | null, name: string): Element | null {
  const native = role === null ? "a, button, input, textarea, select, summary, label, [aria-label]" : NATIVE[role];
  const wanted = squeeze(name);
  for (const element of document.querySelectorAll(native === undefined ? "[role]" : `${native}, [role]`)) {
    const said = element.getAttribute("role");
    if (said !== null && role !== null && said !== role) continue;
    if (namesOf(document, element).some((one) => squeeze(one) === wanted)) return element;
  }
  return null;
}

/** What an accessible name is made of, as far as a document at rest shows it. */
function namesOf(document: Document, element: Element): string[] {
  const names = ["aria-label", "alt", "title", "placeholder", "data-label"].map(
    (attribute) => element.getAttribute(attribute) ?? "",
  );
  if (element.localName === "input") {
    if (/^(?:button|submit|reset)$/i.test(element.getAttribute("type") ?? ""))
      names.push(element.getAttribute("value") ?? "");
  } else if (element.localName !== "select" && element.localName !== "textarea") {
    names.push(element.textContent ?? "");
  }
  const label = element.closest("label");
  if (label !== null)
    names.push(
      [...label.childNodes]
        .filter((child) => child !== element)
        .map((child) => child.textContent ?? "")
        .join(" "),
    );
  if (element.id !== "") {
    for (const other of document.querySelectorAll("label[for]")) {
      if (other.getAttribute("for") === element.id) names.push(other.textContent ?? "");
    }
  }
  return names.filter((one) => one !== "");
}

const squeeze = (text: string): string => text.replace(/\s+/g, " ").trim();
