/** A call in a few words: what it is about. */

const MAX_CHARS = 160;
const SUBJECTS = ["command", "pattern", "path", "query", "question", "name", "url", "action"] as const;

/** `pytest -q`, `"round(" in src`, `src/cart/total.py`. */
export function describeCall(name: string, args: unknown): string {
  if (typeof args !== "object" || args === null) return "";
  const given = args as Record<string, unknown>;
  const text = (key: string): string | null => {
    const value = given[key];
    return typeof value === "string" && value !== "" ? value : null;
  };
  const path = text("path");
  const pattern = text("pattern");
  if (pattern !== null) {
    const quoted = name === "grep" ? `"${pattern}"` : pattern;
    return shorten(path === null ? quoted : `${quoted} in ${path}`);
  }
  if (name === "process") return shorten([text("action"), text("sessionId") ?? text("id")].filter((one) => one !== null).join(" "));
  for (const key of SUBJECTS) {
    const value = text(key);
    if (value !== null) return shorten(value);
  }
  const first = Object.values(given).find((value) => typeof value === "string");
  return typeof first === "string" ? shorten(first) : "";
}

function shorten(text: string): string {
  const line = text.trim().replace(/\s*\n\s*/g, " ⏎ ");
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS - 1)}…` : line;
}
