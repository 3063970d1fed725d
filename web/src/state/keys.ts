/** Keys of the keyboard: single ones, `ctrl+k`, and two in a row: `g t`. */

import { useEffect, useRef } from "react";

export type KeyTable = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const SEQUENCE_MS = 1200;
/** The key before this one, if the two may be a sequence. */
let before: string | null = null;
let prefix: { key: string; until: number } | null = null;

/** The name of a key: `j`, `ctrl+k`, `?`, `Escape`. */
export function nameKey(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  return event.ctrlKey || event.metaKey ? `ctrl+${event.key.toLowerCase()}` : event.altKey ? `alt+${event.key}` : event.key;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

/** Act on keys anywhere in the page. While the person types, only keys with ctrl count. */
export function useKeys(table: KeyTable, enabled = true): void {
  const latest = useRef(table);
  useEffect(() => {
    latest.current = table;
  });
  useEffect(() => {
    if (!enabled) return;
    const press = (event: KeyboardEvent) => {
      const name = nameKey(event);
      if (event.defaultPrevented || event.isComposing) return;
      if (isTyping(event.target) && !name.startsWith("ctrl+")) return;
      const started = before === null ? null : `${before} ${name}`;
      const action = (started === null ? undefined : latest.current[started]) ?? (started === null ? latest.current[name] : undefined);
      if (action !== undefined) {
        event.preventDefault();
        action(event);
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [enabled]);
}

/** Remember `g`, so that the next key completes a sequence. The shell calls this once. */
export function useKeyPrefix(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      before = prefix !== null && prefix.until > event.timeStamp ? prefix.key : null;
      const starts = nameKey(event) === "g" && before === null && !isTyping(event.target);
      prefix = starts ? { key: "g", until: event.timeStamp + SEQUENCE_MS } : null;
    };
    // Before all others.
    window.addEventListener("keydown", press, { capture: true });
    return () => window.removeEventListener("keydown", press, { capture: true });
  }, []);
}
