/*
 * The page's only script: it inflates the app and whatever the app asks for, and runs it from memory. Parts name each
 * other as "part:<name>"; a page has no addresses that they could have.
 */
const addresses = new Map();

async function inflated(name) {
  const text = document.querySelector(`script[data-lazy="${name}"]`)?.textContent;
  if (!text) throw new Error(`this page has no part ${name}`);
  const deflated = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
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
try {
  const [main, worker] = await Promise.all([address("main"), address("worker")]);
  globalThis.__worker = worker;
  await import(main);
} catch (error) {
  document.getElementById("app").textContent = `This browser cannot show the recording: ${error}`;
  throw error;
}
