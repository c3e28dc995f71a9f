/**
 * The panel's signs, drawn once as inline SVG. Every state has a shape of its own, so that none needs its colour.
 */
import type { ComponentChildren, JSX } from "preact";
import { PERMISSIONS, Status, type StatusCode } from "../core/types";

/** [path data or elements, whether it is filled]. All on a 16 by 16 field. */
const SHAPES = {
  tick: [<path d="M3 8.5l3.2 3.2L13 4.6" />, false],
  cross: [<path d="M4 4l8 8M12 4l-8 8" />, false],
  noEntry: [<path fill-rule="evenodd" d="M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zM4.2 6.9h7.6v2.3H4.2z" />, true],
  running: [<path d="M8 2.2a5.8 5.8 0 1 0 5.8 5.8M8 5v3.2l2.2 1.4" />, false],
  question: [<path d="M5.4 6a2.6 2.6 0 1 1 3.6 2.4c-.7.3-1 .8-1 1.5M8 12.6v.2" />, false],
  note: [<path d="M3 13l.7-3L10.6 3.1a1.5 1.5 0 0 1 2.2 2.2L6 12.3z" />, false],
  diamond: [<path d="M8 2.5L13.5 8 8 13.5 2.5 8z" />, false],
  requested: [
    <>
      <circle cx="8" cy="8" r="6" />
      <circle cx="8" cy="8" r="1.8" fill="currentColor" stroke="none" />
    </>,
    false,
  ],
  granted: [
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M5.2 8.2l2 2 3.6-4.2" />
    </>,
    false,
  ],
  autoApproved: [
    <>
      <circle cx="8" cy="8" r="6" stroke-dasharray="2.4 2" />
      <path d="M5.2 8.2l2 2 3.6-4.2" />
    </>,
    false,
  ],
  escalated: [<path d="M8 13.5V3M3.8 7L8 2.8 12.2 7" />, false],
  revoked: [
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M4 12l8-8" />
    </>,
    false,
  ],
  retry: [<path d="M13 8a5 5 0 1 1-1.5-3.6M13 2.5v3h-3" />, false],
  loss: [<path d="M8 2.5v6M8 11.5v.3M2 14h12" />, false],
  warning: [<path d="M8 2.2L14.6 13.5H1.4zM8 6.5v3.2M8 11.6v.1" />, false],
  search: [
    <>
      <circle cx="7" cy="7" r="4.5" />
      <path d="M10.5 10.5L14 14" />
    </>,
    false,
  ],
  masked: [
    <path d="M1.5 8C3.5 4.7 5.7 3.4 8 3.4S12.5 4.7 14.5 8c-2 3.3-4.2 4.6-6.5 4.6S3.5 11.3 1.5 8zM3 13.5L13 2.5" />,
    false,
  ],
  revealed: [
    <>
      <path d="M1.5 8C3.5 4.7 5.7 3.4 8 3.4S12.5 4.7 14.5 8c-2 3.3-4.2 4.6-6.5 4.6S3.5 11.3 1.5 8z" />
      <circle cx="8" cy="8" r="2" />
    </>,
    false,
  ],
  seal: [<path d="M8 1.5L13.5 3.5V8c0 3.5-2.5 5.6-5.5 6.5C5 13.6 2.5 11.5 2.5 8V3.5zM5.5 8l2 2 3.2-3.8" />, false],
  sealBroken: [
    <path d="M8 1.5L13.5 3.5V8c0 3.5-2.5 5.6-5.5 6.5C5 13.6 2.5 11.5 2.5 8V3.5zM6 6l4 4M10 6l-4 4" />,
    false,
  ],
  sealUnread: [
    <path d="M8 1.5L13.5 3.5V8c0 3.5-2.5 5.6-5.5 6.5C5 13.6 2.5 11.5 2.5 8V3.5zM5.2 7.8v.3M8 7.8v.3M10.8 7.8v.3" />,
    false,
  ],
  sealNone: [
    <path d="M8 1.5L13.5 3.5V8c0 3.5-2.5 5.6-5.5 6.5C5 13.6 2.5 11.5 2.5 8V3.5z" stroke-dasharray="2.5 2" />,
    false,
  ],
  compare: [<path d="M2 5h10M9.5 2.5L12 5 9.5 7.5M14 11H4M6.5 8.5L4 11l2.5 2.5" />, false],
  fork: [
    <>
      <circle cx="4" cy="3.2" r="1.7" />
      <circle cx="12" cy="3.2" r="1.7" />
      <circle cx="8" cy="12.8" r="1.7" />
      <path d="M4 5c0 4 4 3 4 6M12 5c0 4-4 3-4 6" />
    </>,
    false,
  ],
  link: [<path d="M6.5 9.5l3-3M7 5l1.6-1.6a2.9 2.9 0 0 1 4 4L11 9M9 11l-1.6 1.6a2.9 2.9 0 0 1-4-4L5 7" />, false],
  copy: [
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 3.5v-.5A1.5 1.5 0 0 0 9 1.5H4A1.5 1.5 0 0 0 2.5 3v6A1.5 1.5 0 0 0 4 10.5" />
    </>,
    false,
  ],
  sun: [
    <>
      <circle cx="8" cy="8" r="3" />
      <path d="M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9L13 13M13 3l-1.1 1.1M4.1 11.9L3 13" />
    </>,
    false,
  ],
  moon: [<path d="M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3z" />, false],
  halfMoon: [
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" stroke="none" />
    </>,
    false,
  ],
  help: [
    <>
      <circle cx="8" cy="8" r="6.3" />
      <path d="M6.2 6.4a1.9 1.9 0 1 1 2.6 1.8c-.6.2-.8.6-.8 1.1M8 11.3v.1" />
    </>,
    false,
  ],
  close: [<path d="M4 4l8 8M12 4l-8 8" />, false],
  play: [<path d="M4.5 2.8l8.5 5.2-8.5 5.2z" />, true],
  pause: [<path d="M4 3h3v10H4zM9 3h3v10H9z" />, true],
  previous: [<path d="M11 3.5v9L4.5 8z" />, true],
  next: [<path d="M5 3.5v9L11.5 8z" />, true],
  first: [<path d="M3 4h1.8v8H3zM13 4v8L6.5 8z" />, true],
  last: [<path d="M11.2 4H13v8h-1.8zM3 4v8l6.5-4z" />, true],
  skip: [<path d="M2.5 4.5L6.5 8l-4 3.5M7.5 4.5L11.5 8l-4 3.5M13.5 4v8" />, false],
  fold: [<path d="M1.5 8h3.5l1.5-3 3 6 1.5-3h3.5" />, false],
  live: [
    <>
      <circle cx="8" cy="8" r="2.2" fill="currentColor" stroke="none" />
      <path d="M4.1 11.9a5.5 5.5 0 0 1 0-7.8M11.9 4.1a5.5 5.5 0 0 1 0 7.8" />
    </>,
    false,
  ],
  chevron: [<path d="M6 3.5L10.5 8 6 12.5" />, false],
  down: [<path d="M3.5 6L8 10.5 12.5 6" />, false],
  file: [
    <path d="M9.5 1.5H4A1.5 1.5 0 0 0 2.5 3v10A1.5 1.5 0 0 0 4 14.5h8a1.5 1.5 0 0 0 1.5-1.5V5.5zM9.5 1.5v4h4" />,
    false,
  ],
  drop: [<path d="M8 2v8M4.5 6.5L8 10l3.5-3.5M2.5 11v1.5A1.5 1.5 0 0 0 4 14h8a1.5 1.5 0 0 0 1.5-1.5V11" />, false],
  lock: [
    <>
      <rect x="3" y="7" width="10" height="7" rx="1.5" />
      <path d="M5 7V5a3 3 0 0 1 6 0v2" />
    </>,
    false,
  ],
  key: [
    <>
      <circle cx="5" cy="11" r="2.8" />
      <path d="M7 9l6-6M10.5 5.5l2 2" />
    </>,
    false,
  ],
  trash: [<path d="M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 9h5.8l.6-9" />, false],
  end: [<path d="M4 4h8v8H4z" />, true],
  tool: [
    <path d="M9.8 4.2a3 3 0 0 1 3.9-1L11.5 5.4l.3 1.2 1.2.3 2-2a3.2 3.2 0 0 1-4.3 3.9L5.4 14a1.6 1.6 0 0 1-2.3-2.3L8.4 6.4" />,
    false,
  ],
  outside: [
    <path d="M9 2.5h4.5V7M13.5 2.5L7.5 8.5M6.5 3.5H3A1.5 1.5 0 0 0 1.5 5v8A1.5 1.5 0 0 0 3 14.5h8a1.5 1.5 0 0 0 1.5-1.5V9.5" />,
    false,
  ],
} as const satisfies Record<string, readonly [ComponentChildren, boolean]>;

export type IconName = keyof typeof SHAPES;

/** A sign. It is hidden from assistive technology unless `label` gives it words. */
export function Icon({ name, label, class: extra }: { name: IconName; label?: string; class?: string }): JSX.Element {
  const [shape, solid] = SHAPES[name];
  return (
    <svg
      class={`icon${solid ? " solid" : ""}${extra ? ` ${extra}` : ""}`}
      viewBox="0 0 16 16"
      role={label ? "img" : undefined}
      aria-label={label}
      aria-hidden={label ? undefined : "true"}
      focusable="false"
    >
      {shape}
    </svg>
  );
}

/** The shape, the word and the class of each way to end. */
export const STATUS: Record<StatusCode, { icon: IconName; word: string; class: string }> = {
  [Status.running]: { icon: "running", word: "running", class: "is-running" },
  [Status.ok]: { icon: "tick", word: "ok", class: "is-ok" },
  [Status.failed]: { icon: "cross", word: "failed", class: "is-failed" },
  [Status.denied]: { icon: "noEntry", word: "denied", class: "is-denied" },
  [Status.unknown]: { icon: "question", word: "end unknown", class: "is-unknown" },
  [Status.note]: { icon: "diamond", word: "no action", class: "is-note" },
};

export function StatusIcon({ status }: { status: StatusCode }): JSX.Element {
  const { icon, word, class: name } = STATUS[status];
  return <Icon name={icon} label={word} class={name} />;
}

/** The glyph of a permission row, by its word. */
export const PERMISSION_ICON: Record<(typeof PERMISSIONS)[number], IconName> = {
  requested: "requested",
  granted: "granted",
  denied: "noEntry",
  auto_approved: "autoApproved",
  escalated: "escalated",
  revoked: "revoked",
};

/** The mark of the product: a world line and the one that leaves it. */
export function Logo(): JSX.Element {
  return (
    <svg
      class="logo"
      width="22"
      height="22"
      viewBox="0 0 22 22"
      fill="none"
      stroke-width="2"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d="M2 17c6 0 6-6 11-6h7" stroke="var(--accent)" />
      <path d="M9 12.5C12 9 13 5 20 4" stroke="var(--event)" />
      <circle cx="9.4" cy="12.4" r="2.2" fill="var(--bg)" stroke="var(--text)" />
    </svg>
  );
}
