/** The arguments of a call: fields from its JSON Schema, their check, the call in other languages. Pure. */

import { Validator } from "@cfworker/json-schema";
import { asList, asRecord, isString, type JsonRecord } from "./json";

export type Args = JsonRecord;
export type FieldKind = "line" | "text" | "choice" | "flag" | "number" | "lines" | "json";

export interface SchemaField {
  name: string;
  kind: FieldKind;
  required: boolean;
  help: string;
  /** How an absent argument counts, as JSON. Empty: nothing. */
  otherwise: string;
  choices: readonly string[];
}

/** The problems of a call by field. Those of no field are under "". */
export type Problems = ReadonlyMap<string, string>;

const LONG_TEXT = 10_000;
const LONG_NAMES = /^(command|content|data|question|prompt|message|body)$|text$/i;
/** What the validator says beside the error of a part. */
const OUTER = new Set(["properties", "patternProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$ref", "additionalProperties"]);

/** The fields of a schema, the required ones first. */
export function listFields(schema: JsonRecord): readonly SchemaField[] {
  const required = new Set(asList(schema.required));
  const fields = Object.entries(asRecord(schema.properties)).map(([name, given]) => readField(name, asRecord(given), required.has(name)));
  return fields.toSorted((a, b) => Number(b.required) - Number(a.required));
}

function readField(name: string, given: JsonRecord, required: boolean): SchemaField {
  const node = skipNull(given);
  const otherwise = given.default === undefined || given.default === null ? "" : JSON.stringify(given.default);
  const choices = asList(node.enum).filter(isString);
  const help = typeof given.description === "string" ? given.description : "";
  return { name, kind: chooseKind(name, node, choices), required, help, otherwise, choices };
}

function chooseKind(name: string, node: JsonRecord, choices: readonly string[]): FieldKind {
  if (Array.isArray(node.enum)) return choices.length === node.enum.length ? "choice" : "json";
  switch (node.type) {
    case "boolean":
      return "flag";
    case "integer":
    case "number":
      return "number";
    case "array":
      return asRecord(node.items).type === "string" ? "lines" : "json";
    case "string":
      return LONG_NAMES.test(name) || Number(node.maxLength ?? 0) > LONG_TEXT ? "text" : "line";
    default:
      return "json";
  }
}

/** A schema that also allows null, without that. */
function skipNull(node: JsonRecord): JsonRecord {
  const others = asList(node.anyOf).map(asRecord).filter((one) => one.type !== "null");
  return others.length === 1 && others[0] !== undefined ? others[0] : node;
}

/** The arguments with which a form begins: a long text may be empty. */
export function startArgs(fields: readonly SchemaField[]): Args {
  return Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      if (!field.required) return [];
      return field.kind === "text" ? [[field.name, ""]] : field.kind === "lines" ? [[field.name, []]] : field.kind === "flag" ? [[field.name, false]] : [];
    }),
  );
}

/** The arguments with one more value. Undefined removes it. */
export function putArg(args: Args, name: string, value: unknown): Args {
  const rest = Object.fromEntries(Object.entries(args).filter(([key]) => key !== name));
  return value === undefined ? rest : { ...rest, [name]: value };
}

/** What is wrong with the arguments, before they are sent. */
export function checkArgs(schema: JsonRecord, args: Args): Problems {
  const problems = new Map<string, string>();
  for (const name of asList(schema.required)) {
    if (typeof name === "string" && args[name] === undefined) problems.set(name, "is required");
  }
  for (const error of runValidator(schema, args)) {
    const [, name = "", ...deeper] = error.instanceLocation.split("/").map(decodePointer);
    if (OUTER.has(error.keyword) || (error.keyword === "required" && name === "") || error.error.includes('Expected "null"')) continue;
    const text = error.keyword === "false" ? "is not an argument" : error.error.replace(/^Instance /, "").replace(/\.$/, "");
    if (!problems.has(name)) problems.set(name, deeper.length > 0 ? `${deeper.join(".")}: ${text}` : text);
  }
  return problems;
}

function runValidator(schema: JsonRecord, args: Args): readonly { instanceLocation: string; keyword: string; error: string }[] {
  try {
    return new Validator(schema, "2020-12", false).validate(args).errors;
  } catch {
    // A schema that the validator cannot read. The server checks the call.
    return [];
  }
}

const decodePointer = (part: string): string => part.replaceAll("~1", "/").replaceAll("~0", "~");

/** The problems that the server names: `{field, problem}`. */
export function readProblems(listed: readonly unknown[]): Problems {
  const problems = new Map<string, string>();
  for (const one of listed) {
    const { field, problem } = asRecord(one);
    const name = typeof field === "string" ? (field.split(/[.[]/, 1)[0] ?? "") : "";
    const text = typeof problem === "string" ? problem : JSON.stringify(one);
    problems.set(name, problems.has(name) ? `${problems.get(name) ?? ""}\n${text}` : text);
  }
  return problems;
}

/** Arguments from JSON that somebody types, or the problem with it. */
export function parseArgs(text: string): { args: Args } | { problem: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { args: value as Args };
    return { problem: "Arguments are one JSON object." };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** The call for a shell. */
export function writeCurl(origin: string, path: string, body: unknown): string {
  const quoted = `'${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
  return [
    `curl ${origin}${path}`,
    '  -H "Authorization: Bearer $HANDRAIL_TOKEN"',
    '  -H "Content-Type: application/json"',
    `  -d ${quoted}`,
  ].join(" \\\n");
}

/** The call for Python. */
export function writePython(name: string, args: Args): string {
  return [
    "from handrail import Handrail",
    "",
    'with Handrail(".", mode="ask") as rail:',
    `    result = rail.call(${writeLiteral(name)}, ${writeLiteral(args)})`,
    "    print(result.content)",
  ].join("\n");
}

function writeLiteral(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null || value === undefined) return "None";
  if (Array.isArray(value)) return `[${value.map(writeLiteral).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${writeLiteral(one)}`).join(", ")}}`;
}
