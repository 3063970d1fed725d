/** One address for each page, task, call, change and record, by the browser's history. */

import type { AnchorHTMLAttributes, MouseEvent, ReactNode } from "react";
import { emit, useWindowValue } from "./state/events";

const readAddress = (): string => window.location.pathname + window.location.search;

export interface Address {
  /** The parts of the path, decoded: `["tasks", "s_1"]`. */
  parts: readonly string[];
  query: URLSearchParams;
}

export function parseAddress(address: string): Address {
  const [path = "", query = ""] = address.split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  return { parts: parts.map(decodePart), query: new URLSearchParams(query) };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A path of the console: `pathTo("tasks", id)`. */
export function pathTo(...parts: readonly (string | number)[]): string {
  return `/${parts.map((part) => encodeURIComponent(String(part))).join("/")}`;
}

export function useAddress(): Address {
  return parseAddress(useWindowValue("popstate", readAddress));
}

export function navigate(address: string, options: { replace?: boolean } = {}): void {
  if (address === readAddress()) return;
  if (options.replace === true) window.history.replaceState(null, "", address);
  else window.history.pushState(null, "", address);
  emit("popstate");
}

/** Set or remove values of the query. The page stays. */
export function setQuery(values: Readonly<Record<string, string | null>>): void {
  const query = new URLSearchParams(window.location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  navigate(window.location.pathname + (text === "" ? "" : `?${text}`), { replace: true });
}

type LinkProps = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> & { to: string; children: ReactNode };

export function Link({ to, children, onClick, ...rest }: LinkProps) {
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a {...rest} href={to} onClick={follow}>
      {children}
    </a>
  );
}
