/** The conflict of an undo, as the server tells it. Pure. */

export interface UndoConflict {
  files: readonly { path: string; by: readonly number[] }[];
  /** The later changes, the latest first. */
  later: readonly number[];
  choices: readonly string[];
}

/** Null: the failure is another one, or tells nothing that a person could choose from. */
export function readConflict(code: string, details: unknown): UndoConflict | null {
  if (code !== "CONFLICT" || typeof details !== "object" || details === null) return null;
  const { conflicts, choices } = details as { conflicts?: unknown; choices?: unknown };
  if (!Array.isArray(conflicts) || !Array.isArray(choices)) return null;
  const files = conflicts.map((one: { path?: unknown; changedBy?: unknown }) => ({
    path: typeof one.path === "string" ? one.path : "",
    by: Array.isArray(one.changedBy) ? one.changedBy.filter((number) => typeof number === "number") : [],
  }));
  const later = Array.from(new Set(files.flatMap((file) => file.by))).sort((a, b) => b - a);
  return { files, later, choices: choices.filter((one) => typeof one === "string") };
}
