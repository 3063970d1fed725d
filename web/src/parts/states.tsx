/** The states of a page: rows that load, nothing there, a failure. */

import { type ReactNode, useEffect, useState } from "react";
import { describeFailure } from "../api/client";
import type { Resource } from "../state/resource";

/** Grey rows while data loads. The style shows them after 200 ms. */
export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className="skeleton" role="status">
      <span className="only-read">Loading</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="skeleton-row" aria-hidden="true" />
      ))}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <p className="empty">{children}</p>;
}

export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  return (
    <div className="failure" role="alert">
      <span aria-hidden="true">✗</span> <span>{describeFailure(error)}</span>
      {retry !== undefined && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shows loading and failure; `children` gets the data. */
export function Loaded<T>({ from, children }: { from: Resource<T>; children: (data: T) => ReactNode }) {
  const { data, error } = from;
  return (
    <>
      {error !== null && <Failure error={error} retry={from.reload} />}
      {data !== undefined ? children(data) : error === null && <Skeleton />}
    </>
  );
}

/** The time now, again every so often. */
export function useNow(everyMs = 10_000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), everyMs);
    return () => window.clearInterval(timer);
  }, [everyMs]);
  return now;
}
