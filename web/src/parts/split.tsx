/** A list with what is open of it beside, and small parts of such pages. */

import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Link } from "../router";
import { useConsole } from "../state/console";
import "./split.css";

interface Props {
  title: string;
  /** Beside the title. */
  tools?: ReactNode;
  children: ReactNode;
  /** Where the list is, without anything open. */
  back: string;
  /** Null: nothing is open. */
  open: ReactNode;
}

export function Split({ title, tools, children, back, open }: Props) {
  const heading = useId();
  return (
    <div className={open === null ? "split" : "split with-open"}>
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

/** Chooses a workspace, if there are several. */
export function WorkspaceSelect({ value, onChange }: { value: string; onChange: (workspace: string) => void }) {
  const { workspaces } = useConsole().info;
  if (workspaces.length < 2) return null;
  return <Choice label="Workspace" value={value} options={workspaces} onChange={onChange} />;
}

/** Something to decide beside a list. It takes the focus, because the button before it is gone. */
export function Notice({ harm = false, children }: { harm?: boolean; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => box.current?.focus(), []);
  return <div ref={box} tabIndex={-1} className={harm ? "notice warn" : "notice"} role={harm ? "alert" : "status"}>{children}</div>;
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly (string | readonly [string, string])[];
  /** The word for no choice. Absent: something is always chosen. */
  all?: string;
  onChange: (value: string) => void;
}

export function Choice({ label, value, options, all, onChange }: ChoiceProps) {
  const listed = options.map((one) => (typeof one === "string" ? ([one, one] as const) : one));
  const isKnown = value === "" || listed.some(([id]) => id === value);
  return (
    <select aria-label={label} title={label} value={value} onChange={(event) => onChange(event.target.value)}>
      {all !== undefined && <option value="">{all}</option>}
      {listed.map(([id, text]) => <option key={id} value={id}>{text}</option>)}
      {!isKnown && <option value={value}>{value}</option>}
    </select>
  );
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
