/** Values of JSON whose shape nothing promises. */

export type JsonRecord = Readonly<Record<string, unknown>>;

/** The fields of an object. Anything else has none. */
export function asRecord(value: unknown): JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonRecord) : {};
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isString(value: unknown): value is string {
  return typeof value === "string";
}
