/** What each verdict on a record looks like, wherever it is said in short: its sign, its word, its tone. */
import type { Integrity } from "../core/types";
import type { IconName } from "./icons";

export const SEALS: Record<Integrity["verdict"], { icon: IconName; text: string; class: string }> = {
  checking: { icon: "sealNone", text: "checking", class: "muted" },
  sealed: { icon: "seal", text: "sealed", class: "is-ok" },
  unread: { icon: "sealUnread", text: "rows not checked", class: "is-warn" },
  changed: { icon: "sealBroken", text: "seal broken", class: "is-failed" },
  unsealed: { icon: "sealNone", text: "unsealed", class: "is-warn" },
  live: { icon: "live", text: "live", class: "is-running" },
  truncated: { icon: "loss", text: "truncated", class: "is-warn" },
  newer: { icon: "warning", text: "newer format", class: "is-warn" },
};
