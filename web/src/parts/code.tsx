/** Source code with colours, which come after the text. */

import { lazy, Suspense } from "react";

const Colours = lazy(() => import("./colours"));
const MAX_PAINTED = 60_000;

interface Props {
  text: string;
  language: string | null;
}

export function Code({ text, language }: Props) {
  return (
    // A region that scrolls has to be reached by the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className="code" tabIndex={0}>
      <code>
        <Painted text={text} language={language} />
      </code>
    </pre>
  );
}

/** The coloured text without a frame. */
export function Painted({ text, language }: Props) {
  if (language === null || text.length > MAX_PAINTED) return text;
  return (
    <Suspense fallback={text}>
      <Colours text={text} language={language} />
    </Suspense>
  );
}
