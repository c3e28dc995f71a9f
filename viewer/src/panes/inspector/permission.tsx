/** A permission: what was wanted, which rule decided, who or what approved, how long it was asked for, what it unlocked. */
import type { JSX } from "preact";
import type { PermissionCard } from "../../core/types";
import { duration } from "../../state/words";
import { Icon, PERMISSION_ICON } from "../icons";
import { JsonView } from "./json-view";
import { Heading, SeekTo } from "./masked";

const WORDS: Record<PermissionCard["word"], string> = {
  requested: "asked, no answer",
  granted: "granted",
  denied: "denied",
  auto_approved: "approved by rule",
  escalated: "escalated",
  revoked: "taken back",
};

const OWN = new Set([
  "policy",
  "rule",
  "by",
  "who",
  "reason",
  "id",
  "policy_id",
  "decision",
  "asked_by",
  "until",
  "scope",
]);

export function PermissionCardView({ card }: { card: PermissionCard }): JSX.Element {
  const { word, facts } = card;
  const refused = word === "denied" || word === "revoked";
  const text = (key: string): string => {
    const value = facts[key];
    return typeof value === "string" || typeof value === "number" ? String(value) : "";
  };
  const rule = [text("policy") || text("policy_id"), text("rule") || text("id")]
    .filter((part) => part !== "")
    .join(" · ");
  const others = Object.entries(facts).filter(([key]) => !OWN.has(key));
  return (
    <article class={`card permission ${refused ? "denied" : ""}`} data-testid="permission">
      <Heading aside={card.askedMs === null ? null : `asked for ${duration(card.askedMs * 1e6)}`}>
        <Icon name={PERMISSION_ICON[word]} /> Permission {WORDS[word]}
      </Heading>
      <div class="kv">
        <span>wanted</span>
        <b class="mono wrap">{card.capability}</b>
        <span>policy</span>
        <span class="wrap">
          {rule === "" ? <span class="muted">none was named</span> : <span class="mono">{rule}</span>} · {WORDS[word]}
        </span>
        <span>decided by</span>
        <span class="wrap">{decidedBy(card, text("by") || text("who"))}</span>
        {text("reason") === "" ? null : (
          <>
            <span>because</span>
            <span class="wrap">{text("reason")}</span>
          </>
        )}
        <span>unlocks</span>
        <span class="wrap">{unlocked(card, text("scope"), text("until"))}</span>
        {others.map(([key, value]) => (
          <KeyValue key={key} name={key} value={value} />
        ))}
      </div>
      <footer class="muted">
        <SeekTo seq={card.seq}>asked {card.seq}</SeekTo>
        {card.answer === null ? (
          ""
        ) : (
          <>
            {" "}
            · <SeekTo seq={card.answer}>answered {card.answer}</SeekTo>
          </>
        )}
      </footer>
    </article>
  );
}

function KeyValue({ name, value }: { name: string; value: unknown }): JSX.Element {
  return (
    <>
      <span>{name}</span>
      <JsonView value={value} lines={4} />
    </>
  );
}

function decidedBy(card: PermissionCard, by: string): string {
  if (card.word === "requested") return "nobody yet";
  if (card.word === "auto_approved") return by === "" ? "a rule, nobody was asked" : `${by}, nobody was asked`;
  if (by === "") return "not said";
  return /policy|rule|cedar|engine/i.test(by) ? `${by}, nobody was asked` : by;
}

function unlocked(card: PermissionCard, scope: string, until: string): string {
  if (card.word === "granted" || card.word === "auto_approved") {
    return [scope === "" ? card.capability : scope, until === "" ? "" : `until ${until}`]
      .filter((part) => part !== "")
      .join(" ");
  }
  if (card.word === "escalated") return "nothing yet: a higher place decides";
  return "nothing";
}
