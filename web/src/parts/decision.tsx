/** A decision of the policy: the tree of parts, each with its rule, and the verdict. */

import type { Decision, DecisionPart, Facts } from "../api/types";
import { nameVerdict } from "../text/permission";
import { StateLabel } from "./signs";
import { Visible } from "./text";

interface Props {
  decision: Decision;
  mode?: string;
  facts?: Facts;
  /** Offers to write a rule for a part. */
  onRule?: (part: DecisionPart) => void;
}

export function DecisionView({ decision, mode, facts, onRule }: Props) {
  const parts = decision.parts ?? [];
  const tier = facts?.command?.tier;
  const hosts = facts?.command?.hosts ?? [];
  return (
    <div className="stack">
      <ul className="tree">
        {parts.map((part, place) => (
          <li key={place}>
            <span className="muted" aria-hidden="true">{place === parts.length - 1 ? "└" : "├"}</span>
            <code className="subject"><Visible text={part.subject} /></code>
            <span>
              <Verdict verdict={part.decision} /> <span className="muted">rule {part.rule}</span>{" "}
              <Visible text={part.reason} />
              {part.effect !== undefined && part.effect !== "" && (
                <span className="muted">
                  {" "}
                  · <Visible text={part.effect} />
                </span>
              )}
              {onRule !== undefined && <button type="button" className="small" onClick={() => onRule(part)}>Add rule…</button>}
            </span>
          </li>
        ))}
      </ul>
      <p className="plain-text">
        = <Verdict verdict={decision.decision} />
        {mode !== undefined && ` in mode ${mode}`}: <Visible text={decision.reason} />{" "}
        <span className="muted">rule {decision.rule}</span>
      </p>
      {facts?.command != null && tier !== undefined && (
        <p className="note">
          {tier === 0 ? "! There is no sandbox here." : `It runs in the sandbox, tier ${tier}.`}{" "}
          {hosts.length > 0 && (
            <>
              Hosts that an approval opens: <Visible text={hosts.join(", ")} />
            </>
          )}
        </p>
      )}
    </div>
  );
}

function Verdict({ verdict }: { verdict: Decision["decision"] }) {
  return <b><StateLabel name={verdict}>{nameVerdict(verdict)}</StateLabel></b>;
}
