/** A call in a few words: what it is about. */

import { shorten } from "./format";
import { asRecord, isString, type JsonRecord } from "./json";

const MAX_CHARS = 160;
const SUBJECTS = ["command", "pattern", "path", "query", "question", "name", "url", "action"] as const;

/** `pytest -q`, `"round(" in src`, `src/cart/total.py`. */
export function describeCall(name: string, args: unknown): string {
  return shorten(findSubject(name, asRecord(args)).trim().replace(/\s*\n\s*/g, " ⏎ "), MAX_CHARS);
}

function findSubject(name: string, args: JsonRecord): string {
  const text = (key: string): string => (isString(args[key]) ? args[key] : "");
  const [path, pattern] = [text("path"), text("pattern")];
  if (pattern !== "") {
    const quoted = name === "grep" ? `"${pattern}"` : pattern;
    return path === "" ? quoted : `${quoted} in ${path}`;
  }
  if (name === "process") return `${text("action")} ${text("sessionId") || text("id")}`;
  return SUBJECTS.map(text).find((one) => one !== "") ?? Object.values(args).find(isString) ?? "";
}
