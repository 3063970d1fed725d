/** A list with what is open of it beside, and small parts of such pages. */

import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Link } from "../router";

interface Props {
  /** A class for styles of the page. */
  name?: string;
  title: string;
  /** Beside the title. */
  tools?: ReactNode;
  children: ReactNode;
  /** Where the list is, without anything open. */
  back: string;
  /** Null: nothing is open. */
  open: ReactNode;
}

export function Split({ name = "", title, tools, children, back, open }: Props) {
  const heading = useId();
  return (
    <div className={open === null ? `split ${name}` : `split ${name} with-open`}>
      <section className="split-list" aria-labelledby={heading}>
        <header className="page-head">
          <h1 id={heading}>{title}</h1>
          {tools}
        </header>
        {children}
      </section>
      {open !== null && (
        <section className="split-open" aria-label="Details">
          <h1 className="back-heading"><Link to={back}>‹ {title}</Link></h1>
          {open}
        </section>
      )}
    </div>
  );
}

/** Something to decide beside a list. It takes the focus, because the button before it is gone. */
export function Notice({ harm = false, children }: { harm?: boolean; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), []);
  return <div ref={box} tabIndex={-1} className={harm ? "notice warn" : "notice"} role={harm ? "alert" : "status"}>{children}</div>;
}

export function CopyButton({ text }: { text: string }) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = window.setTimeout(() => setSaid(null), 2000);
    return () => window.clearTimeout(timer);
  }, [said]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setSaid("Copied"),
      () => setSaid("Not copied: select the text"),
    );
  return <button type="button" onClick={() => void copy()}><span aria-live="polite">{said ?? "Copy"}</span></button>;
}
