/** Pictures that stand in a message or a result: small, and large where somebody wants to look. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Picture } from "../core/types";
import { bytes } from "./stage/layers";

export function Pictures({ pictures }: { pictures: Picture[] | undefined }): JSX.Element | null {
  if (pictures === undefined || pictures.length === 0) return null;
  return (
    <div class="pictures">
      {pictures.map((picture, n) => (
        <One key={n} picture={picture} name={`picture ${n + 1} of ${pictures.length}`} />
      ))}
    </div>
  );
}

function One({ picture, name }: { picture: Picture; name: string }): JSX.Element {
  const [large, setLarge] = useState(false);
  const [broken, setBroken] = useState(false);
  const what = `${name}, ${picture.type.slice(6).toUpperCase()}, ${bytes(Math.floor((picture.base64.length * 3) / 4))}`;
  if (broken) return <span class="missing">{what}: it cannot be drawn</span>;
  return (
    <button
      type="button"
      class={`picture${large ? " large" : ""}`}
      aria-expanded={large}
      title={what}
      onClick={() => setLarge(!large)}
    >
      <img alt={what} src={`data:${picture.type};base64,${picture.base64}`} onError={() => setBroken(true)} />
    </button>
  );
}
