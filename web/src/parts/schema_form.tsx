/** The fields of a call, from its schema. */

import { useId, useState } from "react";
import { type Args, type Problems, putArg, type SchemaField } from "../text/schema";

interface Props {
  fields: readonly SchemaField[];
  args: Args;
  problems: Problems;
  /** Offered for fields that name a file. */
  paths: readonly string[];
  onChange: (args: Args) => void;
}

export function SchemaForm({ fields, args, problems, paths, onChange }: Props) {
  const offered = useId();
  return (
    <div className="schema-form">
      {fields.map((field) => (
        <FieldRow
          key={field.name}
          field={field}
          value={args[field.name]}
          problem={problems.get(field.name) ?? null}
          offered={offered}
          onChange={(value) => onChange(putArg(args, field.name, value))}
        />
      ))}
      {fields.length === 0 && <p className="muted">This tool takes no arguments.</p>}
      <datalist id={offered}>{paths.map((path) => <option key={path} value={path} />)}</datalist>
    </div>
  );
}

interface FieldProps {
  field: SchemaField;
  value: unknown;
  problem: string | null;
  offered: string;
  onChange: (value: unknown) => void;
}

function FieldRow(props: FieldProps) {
  const { field, problem } = props;
  const id = useId();
  return (
    <div className="schema-field">
      <label htmlFor={id} className="mono">
        {field.name}
        {field.required && <span aria-hidden="true">*</span>}
      </label>
      <div className="stack">
        <Control {...props} id={id} />
        {problem !== null && (
          <p id={`${id}-problem`} className="bad plain-text">
            <span aria-hidden="true">✗ </span>
            {problem}
          </p>
        )}
        <p id={`${id}-help`} className="note">{field.help} {field.otherwise !== "" && `Default: ${field.otherwise}.`}</p>
      </div>
    </div>
  );
}

function Control({ id, field, value, problem, offered, onChange }: FieldProps & { id: string }) {
  const common = {
    id,
    required: field.required,
    "aria-invalid": problem !== null,
    "aria-describedby": problem === null ? `${id}-help` : `${id}-problem ${id}-help`,
  };
  const text = typeof value === "string" ? value : "";
  const isKept = field.required && field.kind === "text";
  const setText = (given: string) => onChange(given === "" && !isKept ? undefined : given);
  switch (field.kind) {
    case "flag": {
      const initially = field.otherwise === "true";
      const checked = typeof value === "boolean" ? value : initially;
      return (
        <input
          {...common}
          required={false}
          type="checkbox"
          checked={checked}
          onChange={(event) => onChange(event.target.checked === initially && !field.required ? undefined : event.target.checked)}
        />
      );
    }
    case "choice":
      return (
        <select {...common} value={text} onChange={(event) => setText(event.target.value)}>
          <option value="">{field.required ? "choose" : "not set"}</option>
          {field.choices.map((one) => <option key={one}>{one}</option>)}
        </select>
      );
    case "line": {
      const list = /path|file|folder|cwd/i.test(field.name) ? offered : undefined;
      return <input {...common} type="text" list={list} spellCheck={false} value={text} onChange={(event) => setText(event.target.value)} />;
    }
    case "text":
      return (
        <textarea
          {...common}
          className="mono"
          spellCheck={false}
          rows={Math.min(14, Math.max(2, text.split("\n").length))}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      );
    default:
      return <ParsedControl common={common} field={field} value={value} onChange={onChange} />;
  }
}

interface ParsedProps extends Pick<FieldProps, "field" | "value" | "onChange"> {
  common: { id: string; required: boolean };
}

/** A field whose text is not its value: what is typed stays, and what it means is passed on. */
function ParsedControl({ common, field, value, onChange }: ParsedProps) {
  const [typed, setTyped] = useState<{ text: string; value: unknown }>({ text: writeValue(field, value), value });
  // Changed by another view, for example as JSON.
  if (JSON.stringify(typed.value) !== JSON.stringify(value)) setTyped({ text: writeValue(field, value), value });
  const change = (text: string) => {
    const meant = readValue(field, text);
    setTyped({ text, value: meant });
    onChange(meant);
  };
  if (field.kind === "number") {
    return <input {...common} type="text" inputMode="decimal" value={typed.text} onChange={(event) => change(event.target.value)} />;
  }
  return (
    <textarea
      {...common}
      className="mono"
      spellCheck={false}
      placeholder={field.kind === "lines" ? "one in each line" : "JSON"}
      rows={Math.min(14, Math.max(2, typed.text.split("\n").length))}
      value={typed.text}
      onChange={(event) => change(event.target.value)}
    />
  );
}

function writeValue(field: SchemaField, value: unknown): string {
  if (value === undefined) return "";
  if (field.kind === "lines" && Array.isArray(value)) return value.join("\n");
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** A text that is not what the schema wants stays a text, and its check says so. */
function readValue(field: SchemaField, text: string): unknown {
  if (field.kind === "lines") return text === "" ? (field.required ? [] : undefined) : text.split("\n");
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
