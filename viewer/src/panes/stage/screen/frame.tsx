/**
 * One picture with what is drawn over it: the acted-on element in pink, masked fields hatched.
 *
 * The pixels stand in a canvas that keeps the last picture until the next one is decoded.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Share } from "./geometry";
import type { Picture } from "./pictures";

export interface Overlay {
  target: { box: Share } | { point: { left: number; top: number } } | null;
  verb: string;
  masks: Share[];
}

interface Props {
  picture: Picture;
  label: string;
  overlay: Overlay | null;
  /** At its own size instead of the pane's. */
  actual?: boolean;
  children?: ComponentChildren;
}

export function Frame({ picture, label, overlay, actual = false, children }: Props): JSX.Element {
  const [size, setSize] = useState({ width: picture.width, height: picture.height });
  const width = picture.bitmap === null ? size.width : picture.width;
  const height = picture.bitmap === null ? size.height : picture.height;
  // A vector picture says its size when it has been drawn; until then it may have the pane's.
  const known = width > 0 && height > 0;
  const style = {
    "--w": known ? String(width) : "1280",
    "--ratio": known ? String(width / height) : "1.6",
  };
  return (
    <figure class={`stage-frame${actual ? " actual" : ""}`} style={style} data-testid="stage-frame">
      {picture.bitmap === null ? (
        <Vector blob={picture.blob} label={label} onSize={(w, h) => setSize({ width: w, height: h })} />
      ) : (
        <Pixels picture={picture} label={label} />
      )}
      {children}
      {overlay === null ? null : (
        <div class="stage-over">
          <Over {...overlay} />
        </div>
      )}
    </figure>
  );
}

export function Pixels({
  picture,
  label,
  class: name,
}: {
  picture: Picture;
  label: string;
  class?: string;
}): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  /** The width that it is seen in, in CSS pixels. Asking the element would lay out the page in the middle of a frame. */
  const seen = useRef(0);
  const draw = useRef<() => void>(() => undefined);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    let wanted = true;
    draw.current = () => {
      const { bitmap, blob } = picture;
      if (bitmap === null || seen.current === 0) return;
      if (bitmap.width > 0) return paint(element, bitmap, seen.current);
      // The cache closed it meanwhile: its bytes are still there.
      if (blob.size > 0) {
        // It decoded once; where it does not again, what was drawn before stays.
        createImageBitmap(blob).then(
          (again) => {
            if (wanted) paint(element, again, seen.current);
            again.close();
          },
          () => undefined,
        );
      }
    };
    draw.current();
    return () => {
      wanted = false;
    };
  }, [picture]);
  useLayoutEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const measure = (): void => {
      if (element.clientWidth === seen.current) return;
      seen.current = element.clientWidth;
      draw.current();
    };
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return <canvas ref={canvas} class={name} role="img" aria-label={label} />;
}

/** At the size it is seen in: a canvas that the page scales down itself loses thin strokes, and with them the text. */
function paint(canvas: HTMLCanvasElement, bitmap: ImageBitmap, seen: number): void {
  const scale = seen > 0 ? Math.min(1, (seen * window.devicePixelRatio) / bitmap.width) : 1;
  const width = Math.max(1, Math.round(bitmap.width * scale));
  const height = Math.max(1, Math.round(bitmap.height * scale));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  if (context === null) return;
  context.imageSmoothingQuality = "high";
  context.clearRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0, width, height);
}

/** A vector picture may hold scripts and addresses. An <img> runs and loads none of them. */
function Vector({
  blob,
  label,
  onSize,
}: {
  blob: Blob;
  label: string;
  onSize: (width: number, height: number) => void;
}): JSX.Element {
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return (
    <img
      src={address ?? undefined}
      alt={label}
      onLoad={(event) => onSize(event.currentTarget.naturalWidth, event.currentTarget.naturalHeight)}
    />
  );
}

function Over({ target, verb, masks }: Overlay): JSX.Element {
  return (
    <>
      {masks.map((mask, i) => (
        <div key={i} class="stage-over-mask" style={percent(mask)} title="masked" />
      ))}
      {target === null ? null : "box" in target ? (
        <div
          class={`stage-over-box${target.box.top < 6 ? " below" : ""}${target.box.left > 80 ? " to-left" : ""}`}
          style={percent(target.box)}
          data-testid="acted-box"
        >
          <span class="stage-verb">{verb}</span>
        </div>
      ) : (
        <div
          class="stage-over-point"
          style={{ left: `${target.point.left}%`, top: `${target.point.top}%` }}
          data-testid="acted-point"
        >
          <span class="stage-verb">{verb}</span>
        </div>
      )}
    </>
  );
}

function percent(share: Share): Record<string, string> {
  return { left: `${share.left}%`, top: `${share.top}%`, width: `${share.width}%`, height: `${share.height}%` };
}
