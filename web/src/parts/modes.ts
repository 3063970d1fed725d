/** The modes, with what each asks. */

import type { ModeName } from "../api/client";

export const MODE_WORDS: Readonly<Record<ModeName, string>> = {
  plan: "reads only",
  ask: "asks before changes",
  auto: "asks for what cannot be undone",
  full: "never asks",
};

/** The options of a choice. `short`: only the names. */
export function listModes(modes: readonly ModeName[], short = false): readonly (readonly [ModeName, string, string])[] {
  return modes.map((mode) => [mode, short ? mode : `${mode}: ${MODE_WORDS[mode]}`, MODE_WORDS[mode]]);
}
