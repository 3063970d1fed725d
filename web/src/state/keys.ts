/** Keys of the keyboard: single ones, `ctrl+k`, and two in a row: `g t`. */

import { useWindowEvent } from "./events";

export type KeyTable = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const SEQUENCE_MS = 1200;
/** When `g` was pressed, so that the next key completes a sequence. */
let prefixedAt = -Infinity;
/** The last key, with its prefix. */
let pressed = "";

/** The name of a key: `j`, `ctrl+k`, `?`, `Escape`. */
export function nameKey(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  return event.ctrlKey || event.metaKey ? `ctrl+${event.key.toLowerCase()}` : event.altKey ? `alt+${event.key}` : event.key;
}

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
}

function watchSequence(event: KeyboardEvent): void {
  const name = nameKey(event);
  const isSecond = event.timeStamp - prefixedAt < SEQUENCE_MS;
  pressed = isSecond ? `g ${name}` : name;
  prefixedAt = name === "g" && !isSecond && !isTyping(event.target) ? event.timeStamp : -Infinity;
}

// Before all others.
if (typeof window !== "undefined") window.addEventListener("keydown", watchSequence, { capture: true });

/** Act on keys anywhere in the page. While the person types, only keys with ctrl count. */
export function useKeys(table: KeyTable, enabled = true): void {
  useWindowEvent("keydown", (event) => {
    if (!enabled || !(event instanceof KeyboardEvent) || event.defaultPrevented || event.isComposing) return;
    if (isTyping(event.target) && !pressed.startsWith("ctrl+")) return;
    const action = table[pressed];
    if (action === undefined) return;
    event.preventDefault();
    action(event);
  });
}
