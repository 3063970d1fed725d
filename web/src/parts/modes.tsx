/** The modes, with what each asks. */

import type { ModeName } from "../api/client";

export const MODE_WORDS: Readonly<Record<ModeName, string>> = {
  plan: "reads only",
  ask: "asks before changes",
  auto: "asks for what cannot be undone",
  full: "never asks",
};

/** `short`: only the names. */
export function ModeOptions({ modes, short = false }: { modes: readonly ModeName[]; short?: boolean }) {
  return modes.map((mode) => (
    <option key={mode} value={mode} title={MODE_WORDS[mode]}>
      {short ? mode : `${mode}: ${MODE_WORDS[mode]}`}
    </option>
  ));
}
