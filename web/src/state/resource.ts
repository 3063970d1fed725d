/** Data of a route, with its states: waiting, here, failed. */

import { useCallback, useEffect, useRef, useState } from "react";
import { isAbort } from "../api/client";

export interface Resource<T> {
  data: T | undefined;
  error: unknown;
  /** True once the first load takes longer than 200 ms. Show skeleton rows then. */
  slow: boolean;
  reload: () => void;
  /** Put data there that another request brought. */
  set: (data: T) => void;
}

interface Options {
  /** Load again after so many milliseconds, while the page is visible. */
  every?: number;
}

interface Loaded<T> {
  key: string | null;
  data: T | undefined;
  error: unknown;
}

const SLOW_MS = 200;

/** Load data whenever `key` changes. A `key` of null loads nothing. */
export function useResource<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  options: Options = {},
): Resource<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ key: null, data: undefined, error: null });
  const [slowKey, setSlowKey] = useState<string | null>(null);
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  useEffect(() => {
    latest.current = load;
  });

  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    const timer = window.setTimeout(() => setSlowKey(key), SLOW_MS);
    latest
      .current(controller.signal)
      .then((data) => {
        if (!controller.signal.aborted) setLoaded({ key, data, error: null });
      })
      .catch((error: unknown) => {
        if (controller.signal.aborted || isAbort(error)) return;
        setLoaded((before) => ({ key, data: before.key === key ? before.data : undefined, error }));
      })
      .finally(() => window.clearTimeout(timer));
    return () => {
      controller.abort();
      window.clearTimeout(timer);
    };
  }, [key, turn]);

  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const every = options.every;
  useEffect(() => {
    if (every === undefined || key === null) return;
    const refresh = () => {
      if (document.visibilityState === "visible") reload();
    };
    const timer = window.setInterval(refresh, every);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [every, key, reload]);

  const set = useCallback((data: T) => setLoaded({ key, data, error: null }), [key]);
  const current = loaded.key === key;
  const data = current ? loaded.data : undefined;
  const error = current ? loaded.error : null;
  return { data, error, slow: slowKey === key && data === undefined && error === null, reload, set };
}
