/** Source code with colours. Loaded when the first code is shown. */

import { toJsxRuntime } from "hast-util-to-jsx-runtime";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import { common, createLowlight } from "lowlight";
import type { ReactElement } from "react";
import { Fragment, jsx, jsxs } from "react/jsx-runtime";

const lowlight = createLowlight({ ...common, dockerfile });

export default function Colours({ text, language }: { text: string; language: string }) {
  if (!lowlight.registered(language)) return text;
  return toJsxRuntime(lowlight.highlight(language, text), { Fragment, jsx, jsxs }) as ReactElement;
}
