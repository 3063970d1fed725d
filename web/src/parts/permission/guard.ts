/** Approving is deliberate: nothing counts in the first moments of a request, nor a click that only focused the window. */

import { useCallback, useEffect, useRef } from "react";

const FIRST_MS = 400;
const FOCUS_MS = 300;
let focusedAt = -Infinity;

if (typeof window !== "undefined") {
  window.addEventListener("focus", () => {
    focusedAt = performance.now();
  });
}

/** Whether an answer counts now. `subject` changes with every request and revision. */
export function useGuard(subject: string): () => boolean {
  const shownAt = useRef(Infinity);
  useEffect(() => {
    shownAt.current = performance.now();
  }, [subject]);
  return useCallback(() => {
    const now = performance.now();
    return now - shownAt.current >= FIRST_MS && now - focusedAt >= FOCUS_MS;
  }, []);
}
