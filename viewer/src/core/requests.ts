/**
 * What a model request adds to those before it, read without them: the texts of its row, as one body.
 */
import { textOf } from "./answers";
import { isElement, isObject, isText, reference } from "./fields";
import type { Contents } from "./recording";

/** A body of the elements that this request added; null where it cannot be read. */
export async function addedTexts(form: unknown, contents: Contents, most: number): Promise<string | null> {
  const body = await loaded(form, contents, most);
  if (!isObject(body) || !Array.isArray(body.arrays)) return null;
  const decoder = new TextDecoder();
  const read = async (text: unknown): Promise<string | null> => {
    if (isObject(text) && "$e" in text) return null; // it stands elsewhere, so it is no news
    const ref = reference(text);
    if (ref && ref.size > most) return null;
    const part = await textOf(text, contents);
    return isText(part) ? part : "missing" in part ? null : decoder.decode(part);
  };
  const arrays: string[] = [];
  for (const array of body.arrays) {
    if (!isObject(array) || !isText(array.name)) continue;
    const add = await loaded(array.add, contents, most);
    const texts: string[] = [];
    for (const element of Array.isArray(add) ? add.filter(isElement) : []) {
      const said = await read(element);
      if (said !== null) texts.push(said);
    }
    arrays.push(`${JSON.stringify(array.name)}:[${texts.join(",")}]`);
  }
  return arrays.length > 0 ? `{${arrays.join(",")}}` : read(body.template);
}

async function loaded(form: unknown, contents: Contents, most: number): Promise<unknown> {
  const ref = reference(form);
  if (!ref) return form;
  if (ref.size > most) return null;
  const data = await contents.content(ref);
  if ("missing" in data) return null;
  try {
    return JSON.parse(new TextDecoder().decode(data));
  } catch {
    return null; // not what was written: the verdict says so elsewhere
  }
}
