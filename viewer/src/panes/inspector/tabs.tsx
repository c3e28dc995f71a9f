/** The tabs that are not shown at first: their code comes when one of them is opened. */
import type { JSX } from "preact";
import "../../style/inspector-tabs.css";
import type { StepBody } from "../../core/types";
import type { Open, Tab } from "../../state/app";
import { ConsoleTab } from "./console";
import { IntegrityTab } from "./integrity";
import { NetworkTab } from "./network";
import { RawTab } from "./raw";
import { SnapshotTab } from "./snapshot";
import { StateTab } from "./state-diff";

export function OtherTab({
  now,
  body,
  open,
}: {
  now: Exclude<Tab, "decision">;
  body: StepBody | null;
  open: Open;
}): JSX.Element | null {
  if (now === "integrity") return <IntegrityTab open={open} />;
  if (body === null) return null;
  switch (now) {
    case "snapshot":
      return <SnapshotTab body={body} open={open} />;
    case "state":
      return <StateTab body={body} />;
    case "console":
      return <ConsoleTab body={body} />;
    case "network":
      return <NetworkTab body={body} open={open} />;
    case "raw":
      return <RawTab body={body} />;
  }
}
