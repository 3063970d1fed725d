/** Tells the list of tasks that a task changed, so that it does not wait for its next look. */

import { useEffect } from "react";

const CHANGED = "handrail:tasks";

export function reportTaskChange(): void {
  window.dispatchEvent(new Event(CHANGED));
}

export function useTaskChanges(reload: () => void): void {
  useEffect(() => {
    window.addEventListener(CHANGED, reload);
    return () => window.removeEventListener(CHANGED, reload);
  }, [reload]);
}
