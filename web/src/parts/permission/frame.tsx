/** The frame of a request or question. It never takes the focus. */

import { type KeyboardEvent, type ReactNode, useId } from "react";
import type { AnswerOutcome } from "../../api/types";
import { Failure } from "../states";
import "./permission.css";

/** What a request and a question need from where they stand. */
export interface Answering {
  /** `1 of 2`, if there are several. */
  position?: string;
  offline: boolean;
  /** Beside the title. */
  extra?: ReactNode;
  onAnswered: (outcome: AnswerOutcome) => void;
  /** An answer is on its way. Its event may come before its response. */
  onSending?: (subject: string) => void;
  /** It was answered somewhere else meanwhile. */
  onGone?: (subject: string) => void;
}

interface Props {
  sign: "!" | "?";
  title: string;
  extra: ReactNode;
  error: unknown;
  /** The id of the request. */
  subject?: string;
  foot: ReactNode;
  onKeyDown?: (event: KeyboardEvent) => void;
  children: ReactNode;
}

export function Frame({ sign, title, extra, error, subject, foot, onKeyDown, children }: Props) {
  const heading = useId();
  return (
    // Its keys act only while the focus is in it.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <section className="drawer" aria-labelledby={heading} tabIndex={-1} onKeyDown={onKeyDown} data-request={subject}>
      <header className="drawer-head">
        <h2 id={heading}>
          <span className="warn" aria-hidden="true">{sign} </span>
          {title}
        </h2>
        {extra}
      </header>
      <div className="drawer-body">{children}</div>
      <footer className="drawer-foot">
        {error !== null && <Failure error={error} />}
        {foot}
      </footer>
    </section>
  );
}
