/** A request that a button starts: busy until it ends, with its failure. */

import { useCallback, useEffect, useRef, useState } from "react";

export interface Action {
  busy: boolean;
  error: unknown;
  run: (work: () => Promise<void>) => void;
}

export function useAction(failure: unknown = null): Action {
  const [state, setState] = useState({ busy: false, error: failure });
  const here = useRef(true);
  useEffect(() => {
    here.current = true;
    return () => {
      here.current = false;
    };
  }, []);
  const run = useCallback((work: () => Promise<void>) => {
    const end = (error: unknown) => {
      if (here.current) setState({ busy: false, error });
    };
    setState({ busy: true, error: null });
    work().then(() => end(null), end);
  }, []);
  return { ...state, run };
}
