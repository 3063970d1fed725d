/** Data of a route, with its states: waiting, here, failed. */

import { useCallback, useEffect, useRef, useState } from "react";
import { addressOf, request, type RouteName, type RouteOptions } from "../api/client";
import type { Routes } from "../api/types";

export interface Resource<T> {
  data: T | undefined;
  error: unknown;
  reload: () => void;
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

/** Load data whenever `key` changes. A `key` of null loads nothing. */
export function useResource<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  { every }: Options = {},
): Resource<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ key: null, data: undefined, error: null });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  useEffect(() => {
    latest.current = load;
  });

  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    latest.current(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setLoaded({ key, data, error: null });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setLoaded((before) => ({ key, data: before.key === key ? before.data : undefined, error }));
      },
    );
    return () => controller.abort();
  }, [key, turn]);

  const reload = useCallback(() => setTurn((before) => before + 1), []);
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

  return loaded.key === key ? { data: loaded.data, error: loaded.error, reload } : { data: undefined, error: null, reload };
}

/** The answer of a route, loaded again whenever its address changes. Without `options` nothing is loaded. */
export function useRoute<R extends Extract<RouteName, `GET ${string}`>>(
  route: R,
  options: Pick<RouteOptions<R>, "params" | "query"> | null = {},
  more: Options = {},
): Resource<Routes[R]["answer"]> {
  const key = options === null ? null : addressOf(route, options);
  return useResource(key, (signal) => request(route, { ...options, signal }), more);
}

/** A value once it did not change for a while. */
export function useDelayed<T>(value: T, milliseconds: number): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setDelayed(value), milliseconds);
    return () => window.clearTimeout(timer);
  }, [value, milliseconds]);
  return delayed;
}
