/** The login by a token in the address: `#token=…`. */

import { login } from "./client";

let pending: Promise<void> = Promise.resolve();

/** Take the token out of the address bar and exchange it for a cookie. Fails like the last login did. */
export function loginFromAddress(): Promise<void> {
  const token = readToken(window.location.hash);
  if (token !== null) {
    window.history.replaceState(null, "", window.location.pathname + window.location.search);
    pending = login(token);
  }
  return pending;
}

export function readToken(fragment: string): string | null {
  const token = new URLSearchParams(fragment.replace(/^#/, "")).get("token");
  return token === null || token === "" ? null : token;
}
