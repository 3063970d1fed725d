/** Forms and their fields. */

import type { ComponentProps, KeyboardEvent, ReactNode, SyntheticEvent } from "react";
import { useConsole } from "../state/console";
import { nameKey } from "../state/keys";

interface FormProps {
  id?: string;
  label?: string;
  className?: string;
  /** Whether it can be sent. */
  ready: boolean;
  onSend: () => void;
  /** Leaves the form, which Escape does too. */
  onClose?: () => void;
  children: ReactNode;
}

/** A form that ctrl+enter sends from any of its fields. */
export function Form({ id, label, className = "stack", ready, onSend, onClose, children }: FormProps) {
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    if (ready) onSend();
  };
  const press = (event: KeyboardEvent) => {
    const key = nameKey(event);
    if (key === "ctrl+enter") send(event);
    if (key === "Escape" && onClose !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      onClose();
    }
  };
  return (
    // The keys act in any of its fields.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form id={id} className={className} aria-label={label} noValidate onSubmit={send} onKeyDown={press}>
      {children}
    </form>
  );
}

/** A control below its name. */
export function Labelled({ label, children }: { label: string; children: ReactNode }) {
  return (
    <label className="stack">
      {label}
      {children}
    </label>
  );
}

type FieldProps<T extends "input" | "textarea"> = Omit<ComponentProps<T>, "onChange"> & { onChange: (text: string) => void };

export function SearchField({ label, onChange, ...rest }: FieldProps<"input"> & { label: string }) {
  return <input type="search" aria-label={label} placeholder="Filter" {...rest} onChange={(event) => onChange(event.target.value)} />;
}

export function CheckBox({ label, checked, onChange }: { label: ReactNode; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label className="row">
      <input type="checkbox" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      {label}
    </label>
  );
}

export function TextArea({ onChange, ...rest }: FieldProps<"textarea">) {
  return <textarea {...rest} onChange={(event) => onChange(event.target.value)} />;
}

/** Text for machines, as high as its lines. */
export function CodeArea({ value, ...rest }: Omit<FieldProps<"textarea">, "value"> & { value: string }) {
  const rows = Math.min(14, Math.max(2, value.split("\n").length));
  return <TextArea className="mono" spellCheck={false} rows={rows} value={value} {...rest} />;
}

interface ChoiceProps<V extends string> {
  label: string;
  value: V;
  options: readonly (V | readonly [value: V, text: string, title?: string])[];
  /** The word for no choice. Absent: something is always chosen. */
  all?: string;
  title?: string | undefined;
  className?: string;
  disabled?: boolean;
  onChange: (value: V) => void;
}

export function Choice<V extends string>({ label, options, all, title = label, onChange, ...rest }: ChoiceProps<V>) {
  const listed = options.map((one) => (typeof one === "string" ? ([one, one] as const) : one));
  const { value } = rest;
  const isKnown = value === "" || listed.some(([id]) => id === value);
  return (
    <select aria-label={label} title={title} {...rest} onChange={(event) => onChange(event.target.value as V)}>
      {all !== undefined && <option value="">{all}</option>}
      {listed.map(([id, text, remark]) => (
        <option key={id} value={id} title={remark}>
          {text}
        </option>
      ))}
      {!isKnown && <option value={value}>{value}</option>}
    </select>
  );
}

/** Chooses a workspace, if there are several. */
export function WorkspaceSelect({ value, onChange }: { value: string; onChange: (workspace: string) => void }) {
  const { workspaces } = useConsole().info;
  if (workspaces.length < 2) return null;
  return <Choice label="Workspace" value={value} options={workspaces} onChange={onChange} />;
}
