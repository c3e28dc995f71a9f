/*
 * The page's only script: it inflates the app and whatever the app asks for, and runs it from memory. Parts name each
 * other as "part:<name>"; a page has no addresses that they could have.
 *
 * It stands behind the parts of the first screen and before the others. What takes long and needs no app begins here: the
 * worker, and the question to the page's own server.
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
  const bytes = Uint8Array.from(atob(await deflated(name)), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
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

/** Where a browser starts no worker, the app finds out by itself, and folds without. */
async function begin() {
  globalThis.__worker = await address("worker");
  try {
    const worker = new Worker(globalThis.__worker);
    worker.onerror = () => (globalThis.__ready = null);
    globalThis.__ready = worker;
  } catch {
    globalThis.__ready = null;
  }
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
  const [main] = await Promise.all([address("main"), begin()]);
  await import(main);
} catch (error) {
  document.getElementById("app").textContent = `This browser cannot show the recording: ${error}`;
  throw error;
}
