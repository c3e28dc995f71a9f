/** What was checked of the record, what was found, and what none of it promises. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Integrity, Recording } from "../../core/types";
import { version, type Open } from "../../state/app";
import { copy } from "../../state/link";
import { seekRow } from "../../state/moves";
import { checkAll } from "../../state/reading";
import { get } from "../../state/server";
import { plural } from "../../state/words";
import { Icon, type IconName } from "../icons";
import { JsonView } from "./json-view";
import { Heading } from "./masked";

const WORDS: Record<Integrity["verdict"], { icon: IconName; class: string; title: string; text: string }> = {
  checking: {
    icon: "running",
    class: "is-running",
    title: "Checking",
    text: "The structure is looked at; the chain over all rows follows in the background.",
  },
  sealed: {
    icon: "seal",
    class: "is-ok",
    title: "Sealed, and unchanged as far as it was checked",
    text: "What was read fits the seal. Below stands what was read.",
  },
  unread: {
    icon: "sealUnread",
    class: "is-warn",
    title: "Rows not checked",
    text: "The structure and the index fit the seal. The rows are many, and would be fetched a second time to be checked: that waits for your word.",
  },
  changed: {
    icon: "sealBroken",
    class: "is-failed",
    title: "Changed since it was sealed",
    text: "At least one part does not fit the seal. Do not rely on what you see.",
  },
  unsealed: {
    icon: "sealNone",
    class: "is-warn",
    title: "Not sealed",
    text: "No seal was ever made over this recording: its writer died, or still runs.",
  },
  live: { icon: "live", class: "is-running", title: "Live", text: "The run goes on. A seal is made at its end." },
  truncated: {
    icon: "loss",
    class: "is-warn",
    title: "Cut off",
    text: "The file ends before its end. What could be read is shown.",
  },
  newer: {
    icon: "warning",
    class: "is-warn",
    title: "Of a newer format",
    text: "What this page understands is shown. It cannot judge the rest.",
  },
};

const verdicts = signal<{ of: Open; answer: unknown } | null>(null);
const asking = signal("");

export function IntegrityTab({ open }: { open: Open }): JSX.Element {
  void version.value;
  const { integrity } = open;
  const declared: unknown = open.recording.header.data.masks;
  const masks = Array.isArray(declared) ? declared.filter((mask) => typeof mask === "string") : [];
  const words = WORDS[integrity.verdict];
  return (
    <div class="scroll cards" tabIndex={0} role="group" aria-label="Integrity">
      <article class={`card integrity ${integrity.verdict}`}>
        <Heading>
          <Icon name={words.icon} class={words.class} /> {words.title}
        </Heading>
        <p>{words.text}</p>
        <div class="kv">
          <span>seal</span>
          {integrity.seal === undefined ? (
            <span class="muted">none</span>
          ) : (
            <span>
              <code class="wrap">{integrity.seal}</code>{" "}
              <button type="button" class="link" onClick={() => void copy(integrity.seal ?? "", "seal copied")}>
                copy
              </button>
            </span>
          )}
          <span>signature</span>
          <span>
            {integrity.signed
              ? "a signature stands beside it; worldline verify checks it against a key you trust"
              : "none: nobody vouches for who made it"}
          </span>
          {integrity.expired ? (
            <>
              <span>expired</span>
              <span>{plural(integrity.expired, "content")} removed on purpose, and written down</span>
            </>
          ) : null}
        </div>
      </article>
      {integrity.problems.length === 0 ? null : (
        <article class="card problems">
          <Heading aside={String(integrity.problems.length)}>Problems</Heading>
          <ul class="lines">
            {integrity.problems.slice(0, 200).map((problem, n) => (
              <li key={n}>
                <Icon name="cross" class="is-failed" /> <span class="wrap">{problem.what}</span>{" "}
                {problem.seq === undefined ? null : (
                  <button type="button" class="link" onClick={() => seekRow(problem.seq ?? 0)}>
                    row {problem.seq}
                  </button>
                )}
                {problem.offset === undefined ? null : <span class="muted"> byte {problem.offset}</span>}
              </li>
            ))}
          </ul>
        </article>
      )}
      <article class="card">
        <Heading aside={open.recording.kind}>Checked in this page</Heading>
        {integrity.checked.length === 0 ? (
          <p class="muted">Nothing yet.</p>
        ) : (
          <ul class="lines">
            {integrity.checked.map((what, n) => (
              <li key={n}>
                <Icon name="tick" class="is-ok" /> {what}
              </li>
            ))}
          </ul>
        )}
        {integrity.left === undefined ? null : (
          <div class="rest">
            <span>
              <Icon name="sealUnread" class="is-warn" /> Not looked at: {integrity.left.join(", ")}
            </span>
            <button
              type="button"
              class="button small"
              data-testid="check-all"
              disabled={integrity.verdict === "checking"}
              onClick={() => checkAll(open)}
            >
              {integrity.verdict === "checking" ? "checking…" : "check everything"}
            </button>
          </div>
        )}
      </article>
      {open.server === null ? null : <Asked open={open} />}
      <article class="card">
        <Heading>What this does not say</Heading>
        <ul class="lines dots">
          <li>
            A seal shows change, not authorship: who can write the file can seal it again. A signature, or a seal you
            noted elsewhere, closes that.
          </li>
          <li>It covers what was recorded. What never crossed a recorded boundary is not in it.</li>
          <li>Notes, the audit trail and the pictures made for this page stand outside the seal.</li>
          <li>Masking on this screen hides nothing in the file.</li>
          {mayHaveGoneOn(open.recording) ? (
            <li class="is-warn">
              It was recorded with fail-open and broke off: behind its end the agent may have acted, on no record.
            </li>
          ) : null}
          {masks.length === 0 ? null : (
            <li>
              A replay of it does not compare what its masks leave out:{" "}
              {masks.map((mask, n) => (
                <code key={n} class="wrap">
                  {n > 0 ? ", " : ""}
                  {mask}
                </code>
              ))}
            </li>
          )}
        </ul>
      </article>
    </div>
  );
}

/** As `engine/eligibility.py` says it: it fails open, and its recorder did not seal it. */
function mayHaveGoneOn({ kind, header, manifest }: Recording): boolean {
  if (header.data.fail_open !== true || kind === "live") return false;
  return manifest === null || String(manifest.sealed_by).endsWith(" reconcile");
}

/** The full judgement is the command's: it reads every byte. */
function Asked({ open }: { open: Open }): JSX.Element {
  const known = verdicts.value?.of === open ? verdicts.value.answer : null;
  const ask = async (): Promise<void> => {
    asking.value = "asking";
    try {
      verdicts.value = { of: open, answer: await get<unknown>(`${open.server ?? ""}verify`) };
      asking.value = "";
    } catch (reason) {
      asking.value = reason instanceof Error ? reason.message : String(reason);
    }
  };
  return (
    <article class="card">
      <Heading
        aside={
          <button type="button" class="button small" disabled={asking.value === "asking"} onClick={() => void ask()}>
            ask now
          </button>
        }
      >
        worldline verify
      </Heading>
      {asking.value !== "" && asking.value !== "asking" ? (
        <p class="is-failed" role="alert">
          {asking.value}
        </p>
      ) : null}
      {known === null ? (
        <p class="muted">
          Reads every byte on the server, and gives its five answers: structure, evidence, publication, availability,
          authenticity.
        </p>
      ) : (
        <JsonView value={known} lines={60} />
      )}
    </article>
  );
}
