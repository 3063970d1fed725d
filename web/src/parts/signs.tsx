/** The signs and colours of states. A word beside a sign says the same. */

import type { ReactNode } from "react";

const SIGNS = {
  allow: ["✓", "ok"],
  confirm: ["!", "warn"],
  deny: ["✗", "bad"],
  idle: ["○", "muted"],
  queued: ["○", "muted"],
  ready: ["○", "muted"],
  progress: ["●", "muted"],
  running: ["●", "accent"],
  waiting: ["!", "warn"],
  asking: ["!", "warn"],
  warning: ["!", "warn"],
  interrupted: ["✗", "warn"],
  ok: ["✓", "ok"],
  done: ["✓", "ok"],
  success: ["✓", "ok"],
  exited: ["✓", "muted"],
  failed: ["✗", "bad"],
  error: ["✗", "bad"],
  limit: ["✗", "bad"],
  unreadable: ["✗", "bad"],
  denied: ["⊘", "muted"],
  cancelled: ["⊘", "muted"],
  info: ["·", "muted"],
} as const;

export type SignName = keyof typeof SIGNS;

/** `classes`: more than its colour. */
export function Sign({ name, classes = "" }: { name: SignName; classes?: string }) {
  const [sign, colour] = SIGNS[name];
  return <span className={`${colour} ${classes}`} aria-hidden="true">{sign}</span>;
}

/** A sign and its words in one colour. */
export function StateLabel({ name, children }: { name: SignName; children: ReactNode }) {
  return (
    <span className={`state-label ${colourOf(name)}`}>
      <Sign name={name} /> {children}
    </span>
  );
}

export function colourOf(name: SignName): string {
  return SIGNS[name][1];
}
