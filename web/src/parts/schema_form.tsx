/** The fields of a call, from its schema. */

import { useId, useState } from "react";
import { isString } from "../text/json";
import { type Args, type Problems, putArg, type SchemaField } from "../text/schema";
import { CodeArea } from "./fields";

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

function Control(props: FieldProps & { id: string }) {
  const { id, field, value, problem, onChange } = props;
  const common: CommonProps = {
    id,
    required: field.required,
    "aria-invalid": problem !== null,
    "aria-describedby": problem === null ? `${id}-help` : `${id}-problem ${id}-help`,
  };
  if (field.kind === "flag") {
    const initially = field.otherwise === "true";
    return (
      <input
        {...common}
        required={false}
        type="checkbox"
        checked={typeof value === "boolean" ? value : initially}
        onChange={(event) => onChange(event.target.checked === initially && !field.required ? undefined : event.target.checked)}
      />
    );
  }
  if (field.kind === "choice") {
    return (
      <select {...common} value={isString(value) ? value : ""} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">{field.required ? "choose" : "not set"}</option>
        {field.choices.map((one) => <option key={one}>{one}</option>)}
      </select>
    );
  }
  return <TextControl {...props} common={common} />;
}

interface CommonProps {
  id: string;
  required: boolean;
  "aria-invalid": boolean;
  "aria-describedby": string;
}

/** A field of text, which need not be its value: what is typed stays, and what it means is passed on. */
function TextControl({ common, field, value, offered, onChange }: FieldProps & { common: CommonProps }) {
  const [typed, setTyped] = useState<{ text: string; value: unknown }>({ text: writeValue(field, value), value });
  // Changed by another view, for example as JSON.
  if (JSON.stringify(typed.value) !== JSON.stringify(value)) setTyped({ text: writeValue(field, value), value });
  const change = (text: string) => {
    const meant = readValue(field, text);
    setTyped({ text, value: meant });
    onChange(meant);
  };
  if (field.kind === "number" || field.kind === "line") {
    const mode = field.kind === "number" ? "decimal" : "text";
    const list = field.kind === "line" && /path|file|folder|cwd/i.test(field.name) ? offered : undefined;
    return <input {...common} type="text" inputMode={mode} list={list} spellCheck={false} value={typed.text} onChange={(event) => change(event.target.value)} />;
  }
  const hint = field.kind === "text" ? undefined : field.kind === "lines" ? "one in each line" : "JSON";
  return <CodeArea {...common} placeholder={hint} value={typed.text} onChange={change} />;
}

function writeValue(field: SchemaField, value: unknown): string {
  if (value === undefined) return "";
  if (field.kind === "lines" && Array.isArray(value)) return value.join("\n");
  return isString(value) ? value : JSON.stringify(value, null, 2);
}

/** A text that is not what the schema wants stays a text, and its check says so. */
function readValue(field: SchemaField, text: string): unknown {
  switch (field.kind) {
    case "line":
      return text === "" ? undefined : text;
    case "text":
      return text === "" && !field.required ? undefined : text;
    case "lines":
      return text !== "" ? text.split("\n") : field.required ? [] : undefined;
    default:
      if (text.trim() === "") return undefined;
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
