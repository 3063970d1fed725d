/** The state of a task: a sign and a word. */

import type { TaskState } from "../api/client";

const SIGNS: Readonly<Record<TaskState, readonly [string, string]>> = {
  idle: ["○", "muted"],
  running: ["●", "accent"],
  waiting: ["!", "warn"],
  done: ["✓", "ok"],
  failed: ["✗", "bad"],
  cancelled: ["⊘", "muted"],
  limit: ["✗", "bad"],
  interrupted: ["✗", "warn"],
  unreadable: ["✗", "bad"],
};

export function TaskStateLabel({ state }: { state: TaskState }) {
  const [sign, colour] = SIGNS[state];
  return (
    <span className={`task-state ${colour}`}>
      <span aria-hidden="true">{sign}</span> {state}
    </span>
  );
}
