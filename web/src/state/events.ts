/** Events of the window, and our own beside them. */

import { useEffect, useRef, useSyncExternalStore } from "react";

type EventName = "keydown" | "popstate" | "hashchange" | "resize" | `handrail:${"tasks" | "theme" | "unauthorized"}`;

export function emit(name: EventName): void {
  window.dispatchEvent(new Event(name));
}

export function useWindowEvent(name: EventName, act: (event: Event) => void): void {
  const latest = useRef(act);
  useEffect(() => {
    latest.current = act;
  });
  useEffect(() => {
    const listener = (event: Event) => latest.current(event);
    window.addEventListener(name, listener);
    return () => window.removeEventListener(name, listener);
  }, [name]);
}

/** A value outside of React, read again after an event. */
export function useWindowValue<T>(name: EventName, read: () => T): T {
  const subscribe = (listener: () => void) => {
    window.addEventListener(name, listener);
    return () => window.removeEventListener(name, listener);
  };
  return useSyncExternalStore(subscribe, read);
}
