/** The login by a token in the address: `#token=…`. */

import { login } from "./client";

/** Take the token out of the address bar and exchange it for a cookie. False: there was none. */
export async function loginFromAddress(): Promise<boolean> {
  const token = readToken(window.location.hash);
  if (token === null) return false;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  await login(token);
  return true;
}

export function readToken(fragment: string): string | null {
  const token = new URLSearchParams(fragment.replace(/^#/, "")).get("token");
  return token === null || token === "" ? null : token;
}
