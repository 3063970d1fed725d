/** A request that a button starts: busy until it ends, with its failure. */

import { useCallback, useEffect, useRef, useState } from "react";

export interface Action {
  busy: boolean;
  error: unknown;
  run: (work: () => Promise<void>) => void;
  clear: () => void;
}

export function useAction(): Action {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const here = useRef(true);
  useEffect(() => {
    here.current = true;
    return () => {
      here.current = false;
    };
  }, []);
  const run = useCallback((work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    work()
      .catch((failure: unknown) => {
        if (here.current) setError(failure);
      })
      .finally(() => {
        if (here.current) setBusy(false);
      });
  }, []);
  const clear = useCallback(() => setError(null), []);
  return { busy, error, run, clear };
}
