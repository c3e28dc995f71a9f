/**
 * @vitest-environment happy-dom
 *
 * No script of a recorded document survives, in whatever way it is written, and the policy stands before everything
 * else.
 */
import { describe, expect, it } from "vitest";
import { POLICY, safeDocument, type Aim } from "../../src/panes/stage/dom/document";

// This parser is not as inert as a browser's: it would say of every address that it does not load it.
(Reflect.get(window, "happyDOM") as { settings: Record<string, unknown> }).settings.handleDisabledFileLoadingAsSuccess =
  true;

const NO_AIM: Aim = { selector: null, ref: null, role: null, name: null };
const safe = (html: string, aim = NO_AIM, mask = false): Document =>
  new DOMParser().parseFromString(safeDocument(html, aim, mask).html, "text/html");

const HOSTILE = [
  "<script>parent.evil()</script>",
  "<img src=x onerror=evil()>",
  "<svg onload=evil()><script>evil()</script><a xlink:href='javascript:evil()'><text>x</text></a></svg>",
  "<a href='javascript:evil()' ping='https://evil.example' target=_top>x</a>",
  "<a href=' java\nscript:evil()'>x</a>",
  "<iframe srcdoc='<script>evil()</script>' src='https://evil.example'></iframe>",
  "<object data='https://evil.example/a.swf'></object><embed src='https://evil.example'>",
  "<meta http-equiv=refresh content='0;url=https://evil.example'><base href='https://evil.example/'>",
  "<link rel=preconnect href='https://evil.example'><link rel=stylesheet href='https://evil.example/a.css'>",
  "<form action='https://evil.example'><button formaction='javascript:evil()'>x</button></form>",
  "<img srcset='https://evil.example/a.png 2x'><video poster='https://evil.example/a.png'><source src='https://evil.example'></video>",
  "<template><script>evil()</script><img src=x onerror=evil()><template><img onerror=evil() src=x></template></template>",
  "<div><template shadowrootmode=open><script>evil()</script><img src=x onerror=evil()></template></div>",
  "<noscript><p title='</noscript><img src=x onerror=evil()>'></noscript>",
  "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=evil()&gt;'></mglyph></table></mtext></math>",
  "<svg><animate attributeName=href values='javascript:evil()' /><set attributeName=onmouseover to='evil()' /></svg>",
  "<body onload=evil() background='https://evil.example/a.png'>",
  "<input autofocus onfocus=evil()><details ontoggle=evil() open>",
  "<img src='data:text/html,<script>evil()</script>'><iframe src='data:text/html,<script>evil()</script>'></iframe>",
];

function everything(root: Document | DocumentFragment): Element[] {
  return [...root.querySelectorAll("*")].flatMap((element) => {
    const content = element.localName === "template" ? (element as HTMLTemplateElement).content : null;
    return [element, ...(content === null ? [] : everything(content))];
  });
}

describe("a hostile document", () => {
  it.each(HOSTILE)("keeps nothing that acts: %s", (html) => {
    const document = safe(`<!doctype html><html><head><title>x</title></head><body>${html}</body></html>`);
    for (const element of everything(document)) {
      const tag = element.localName.toLowerCase();
      const isOurs = tag === "meta" && ["charset", "http-equiv"].some((name) => element.hasAttribute(name));
      expect([
        "script",
        "iframe",
        "frame",
        "object",
        "embed",
        "base",
        "link",
        "noscript",
        "animate",
        "set",
        ...(isOurs ? [] : ["meta"]),
      ]).not.toContain(tag);
      for (const { name, value } of element.attributes) {
        expect(name.toLowerCase().startsWith("on"), `${tag} ${name}`).toBe(false);
        if (name.startsWith("data-")) continue;
        if (
          [
            "href",
            "src",
            "srcset",
            "action",
            "formaction",
            "xlink:href",
            "ping",
            "poster",
            "background",
            "data",
            "target",
          ].includes(name.toLowerCase())
        ) {
          expect(value, `${tag} ${name}`).toMatch(/^data:image\//);
        }
      }
    }
    expect(document.querySelectorAll("meta[http-equiv]").length).toBe(1);
  });

  it("stands behind the policy, which is the first thing in it", () => {
    for (const html of [
      "",
      "plain words",
      "<p>x",
      "<html><head><meta charset=utf-16><style>p{}</style></head>",
      "<frameset><frame src=x></frameset>",
    ]) {
      const { html: out } = safeDocument(html, NO_AIM, false);
      expect(out).toMatch(
        /^<!doctype html><html[^>]*><head><meta http-equiv="Content-Security-Policy" content="[^"]*">/,
      );
      expect(out).toContain(POLICY);
    }
    expect(POLICY).toContain("default-src 'none'");
    expect(POLICY).not.toContain("script-src");
  });

  it("keeps what is only to be seen", () => {
    const document = safe(
      "<h1 style='color:red' class=a>Title</h1><img src='data:image/png;base64,AAAA'><a href='/next'>next</a><style>h1{}</style>",
    );
    expect(document.querySelector("h1")?.getAttribute("style")).toContain("color");
    expect(document.querySelector("img")?.getAttribute("src")).toBe("data:image/png;base64,AAAA");
    expect(document.querySelector("a")?.hasAttribute("href")).toBe(false);
    expect(document.querySelector("a")?.getAttribute("data-was-href")).toBe("/next");
    expect(document.querySelectorAll("style").length).toBe(2);
  });
});

it("a sheet loses what it would fetch, and keeps inline pictures", () => {
  const out = safeDocument(
    "<style>@import 'https://evil.example/a.css'; p { background: url( https://evil.example/a.png ); list-style: url('data:image/png;base64,AA') }</style><p style='background:URL(\"//evil.example\")'>x",
    NO_AIM,
    false,
  ).html;
  expect(out).not.toContain("evil");
  expect(out).toContain("data:image/png;base64,AA");
});

describe("the acted-on element", () => {
  const html = "<main><button id=pay data-ref=e21>Pay</button><button>Other</button></main>";

  it("is marked by its selector, or by its ref", () => {
    expect(safe(html, { ...NO_AIM, selector: "#pay", ref: null }).querySelector("[data-acted]")?.textContent).toBe(
      "Pay",
    );
    expect(safe(html, { ...NO_AIM, selector: null, ref: "e21" }).querySelector("[data-acted]")?.textContent).toBe(
      "Pay",
    );
    expect(safe(html, { ...NO_AIM, selector: "#gone", ref: "e21" }).querySelector("[data-acted]")?.textContent).toBe(
      "Pay",
    );
  });

  it("is marked by its role and name, where the page carries no refs", () => {
    const form =
      "<h1>Pay</h1><label for=a>Amount</label><input id=a><label>Why <textarea></textarea></label><button> Issue\n refund </button><input type=submit value=Send>";
    const marked = (role: string | null, name: string): string | undefined =>
      safe(form, { ...NO_AIM, ref: "e1", role, name }).querySelector("[data-acted]")?.localName;
    expect([
      marked("button", "Issue refund"),
      marked("textbox", "Amount"),
      marked("textbox", "Why"),
      marked(null, "Send"),
      marked("heading", "Pay"),
    ]).toEqual(["button", "input", "textarea", "input", "h1"]);
    expect(safeDocument(form, { ...NO_AIM, role: "button", name: "Amount" }, false).found).toBe(false);
  });

  it("may be missing, and a selector of another language finds nothing and breaks nothing", () => {
    expect(safeDocument(html, { ...NO_AIM, selector: "#gone", ref: null }, false).found).toBe(false);
    expect(safeDocument(html, { ...NO_AIM, selector: "text=Pay >> nth=0", ref: null }, false).found).toBeNull();
    expect(safeDocument(html, { ...NO_AIM, selector: null, ref: '"] , script [x="\\' }, false).found).toBe(false);
    expect(safeDocument(html, NO_AIM, false).found).toBeNull();
  });
});

describe("the mask", () => {
  it("hides what was typed and leaves what is a word of the page", () => {
    const html =
      "<input value=secret1><input type=password value=secret2><input type=submit value=Send><textarea>secret3</textarea><select><option>one<option selected>two</select><div contenteditable>secret4</div><p>shown</p>";
    const hidden = safeDocument(html, NO_AIM, true).html;
    expect(hidden).not.toMatch(/secret/);
    expect(hidden).not.toContain("selected");
    expect(hidden).toContain("Send");
    expect(hidden).toContain("shown");
    expect(safeDocument(html, NO_AIM, false).html.match(/secret/g)).toHaveLength(4);
  });
});
