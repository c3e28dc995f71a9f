/*
 * The page's only script: it inflates the app and whatever the app asks for, and runs it from memory. Parts name each
 * other as "part:<name>"; a page has no addresses that they could have.
 *
 * It stands behind the parts of the first screen and before the others. What takes long and needs no app begins here: the
 * question to the page's own server.
 */
const addresses = new Map();

/** The text of a part. One that something follows is whole; those for later may still be on their way. */
async function deflated(name) {
  for (;;) {
    const loading = document.readyState === "loading";
    const element = document.querySelector(`script[data-lazy="${name}"]`);
    if (element && (element.nextElementSibling || !loading)) return element.textContent;
    if (!element && !loading) throw new Error(`this page has no part ${name}`);
    await new Promise((go) => setTimeout(go, 10));
  }
}

async function inflated(name) {
  const text = await deflated(name);
  const bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  // Written by hand: as a blob they would go to the browser's own process first, and come back from there in pieces.
  const inflating = new DecompressionStream("deflate-raw");
  const writer = inflating.writable.getWriter();
  Promise.all([writer.write(bytes), writer.close()]).catch(() => 0); // whoever reads them is told what is wrong
  return new Response(inflating.readable).text();
}

async function load(name) {
  const parts = (await inflated(name)).split(/"part:([a-zA-Z0-9_-]+)"/);
  await Promise.all(parts.map(async (part, i) => i % 2 && (parts[i] = `"${await address(part)}"`)));
  return URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
}

function address(name) {
  if (!addresses.has(name)) addresses.set(name, load(name));
  return addresses.get(name);
}

globalThis.__part = async (name) => import(await address(name));
if (
  location.protocol !== "file:" &&
  !document.querySelector('meta[name="worldline-bundle"], meta[name="worldline-folder"]')
) {
  globalThis.__session = fetch("api/session", { credentials: "same-origin", cache: "no-store" });
  globalThis.__session.catch(() => 0); // the app awaits it, and says what is wrong
}
try {
  const [main, worker] = await Promise.all([address("main"), address("worker")]);
  globalThis.__worker = worker;
  await import(main);
} catch (error) {
  document.getElementById("app").textContent = `This browser cannot show the recording: ${error}`;
  throw error;
}
