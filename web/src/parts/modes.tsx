/** The modes, with what each asks. */

import type { ModeName } from "../api/client";

export const MODE_WORDS: Readonly<Record<ModeName, string>> = {
  plan: "reads only",
  ask: "asks before changes",
  auto: "asks for what cannot be undone",
  full: "never asks",
};

export function ModeOptions({ modes }: { modes: readonly ModeName[] }) {
  return modes.map((mode) => (
    <option key={mode} value={mode}>
      {mode}: {MODE_WORDS[mode]}
    </option>
  ));
}
