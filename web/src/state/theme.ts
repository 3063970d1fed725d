/** Light or dark: by the system, unless the person chose. */

import { emit, useWindowValue } from "./events";

export type Theme = "system" | "light" | "dark";
const KEY = "handrail.theme";

export function readTheme(): Theme {
  try {
    const stored = window.localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
}

export function chooseTheme(theme: Theme): void {
  try {
    if (theme === "system") window.localStorage.removeItem(KEY);
    else window.localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice lasts until the page is loaded again.
  }
  applyTheme(theme);
  emit("handrail:theme");
}

export function useTheme(): Theme {
  return useWindowValue("handrail:theme", readTheme);
}
