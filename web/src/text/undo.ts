/** The conflict of an undo, as the server tells it. Pure. */

import { asList, asRecord, isString } from "./json";

export interface UndoConflict {
  files: readonly { path: string; by: readonly number[] }[];
  /** The later changes, the latest first. */
  later: readonly number[];
  choices: readonly string[];
}

/** Null: the failure is another one, or tells nothing that a person could choose from. */
export function readConflict(code: string, details: unknown): UndoConflict | null {
  const { conflicts, choices } = asRecord(details);
  if (code !== "CONFLICT" || !Array.isArray(conflicts) || !Array.isArray(choices)) return null;
  const files = conflicts.map((one) => {
    const { path, changedBy } = asRecord(one);
    return { path: isString(path) ? path : "", by: asList(changedBy).filter((number) => typeof number === "number") };
  });
  const later = Array.from(new Set(files.flatMap((file) => file.by))).sort((a, b) => b - a);
  return { files, later, choices: choices.filter(isString) };
}
