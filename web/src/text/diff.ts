/** A unified diff as files, hunks and rows. */

import { diffWordsWithSpace, parsePatch } from "diff";

export interface Row {
  kind: "same" | "added" | "removed" | "note";
  before: number | null;
  after: number | null;
  text: string;
  /** The parts of the line that differ from its partner. */
  marks: readonly { text: string; changed: boolean }[] | null;
}

export interface Hunk {
  header: string;
  rows: readonly Row[];
}

export interface FileDiff {
  path: string;
  from: string | null;
  added: number;
  removed: number;
  hunks: readonly Hunk[];
  /** Lines that belong to no hunk: `Binary files differ`, a changed mode. */
  notes: readonly string[];
}

const MAX_MARKED = 400;

/** The files of a diff. A text that is no diff becomes notes of one file. */
export function parseDiff(text: string): readonly FileDiff[] {
  return splitFiles(text).map(parseFile);
}

function splitFiles(text: string): readonly string[] {
  const lines = text.split("\n");
  const starts: number[] = [];
  lines.forEach((line, place) => {
    const header = line.startsWith("--- ") && (lines[place + 1] ?? "").startsWith("+++ ");
    const bare = line.startsWith("Binary ") || /^(diff --git|rename from|old mode) /.test(line);
    if (header || bare) starts.push(place);
  });
  if (starts.length === 0) return text.trim() === "" ? [] : [text];
  const places = starts.filter((place, n) => n === 0 || !isPartOf(lines, starts[n - 1] ?? 0, place));
  return places.map((place, n) => lines.slice(n === 0 ? 0 : place, places[n + 1] ?? lines.length).join("\n"));
}

/** Whether the lines between two starts have no hunk, so that both belong to one file. */
function isPartOf(lines: readonly string[], start: number, place: number): boolean {
  const first = lines[start] ?? "";
  if (first.startsWith("Binary ") || first.startsWith("--- ")) return false;
  return !lines.slice(start, place).some((line) => line.startsWith("@@") || line === "");
}

function parseFile(text: string): FileDiff {
  const patch = readPatch(text);
  if (patch === null || patch.hunks.length === 0) {
    const notes = text.split("\n").filter((line) => line !== "" && !/^(---|\+\+\+) /.test(line));
    const named = /^\+\+\+ (.+)$/m.exec(text)?.[1] ?? /^--- (.+)$/m.exec(text)?.[1] ?? "";
    return { path: cleanPath(named), from: null, added: 0, removed: 0, hunks: [], notes };
  }
  const before = cleanPath(patch.oldFileName ?? "");
  const after = cleanPath(patch.newFileName ?? "");
  const hunks = patch.hunks.map((hunk) => ({
    header: `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    rows: buildRows(hunk.lines, hunk.oldStart, hunk.newStart),
  }));
  const rows = hunks.flatMap((hunk) => hunk.rows);
  const count = (kind: Row["kind"]) => rows.filter((row) => row.kind === kind).length;
  const path = after === "/dev/null" || after === "" ? before : after;
  const from = before !== path && before !== "/dev/null" && before !== "" ? before : null;
  const notes = text.slice(0, Math.max(0, text.indexOf("--- "))).split("\n").filter((line) => line !== "");
  return { path, from, added: count("added"), removed: count("removed"), hunks, notes };
}

function readPatch(text: string) {
  try {
    return parsePatch(text)[0] ?? null;
  } catch {
    return readLoosely(text);
  }
}

/** The hunks of a diff that was cut, whose numbers therefore do not add up. */
function readLoosely(text: string) {
  const hunks: { oldStart: number; oldLines: number; newStart: number; newLines: number; lines: string[] }[] = [];
  for (const line of text.split("\n")) {
    const header = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    if (header !== null) {
      const [oldStart, oldLines, newStart, newLines] = [1, 2, 3, 4].map((n) => Number(header[n] ?? 1));
      hunks.push({ oldStart: oldStart ?? 1, oldLines: oldLines ?? 1, newStart: newStart ?? 1, newLines: newLines ?? 1, lines: [] });
    } else if (/^[ +\-\\]/.test(line)) {
      hunks.at(-1)?.lines.push(line);
    }
  }
  const oldFileName = /^--- (.+)$/m.exec(text)?.[1];
  const newFileName = /^\+\+\+ (.+)$/m.exec(text)?.[1];
  return hunks.length === 0 ? null : { oldFileName, newFileName, hunks };
}

function cleanPath(name: string): string {
  const bare = name.split("\t", 1)[0] ?? "";
  return bare.replace(/^[ab]\//, "");
}

function buildRows(lines: readonly string[], oldStart: number, newStart: number): readonly Row[] {
  let before = oldStart;
  let after = newStart;
  const rows: Row[] = [];
  for (const line of lines) {
    const text = line.slice(1);
    if (line.startsWith("+")) rows.push({ kind: "added", before: null, after: after++, text, marks: null });
    else if (line.startsWith("-")) rows.push({ kind: "removed", before: before++, after: null, text, marks: null });
    else if (line.startsWith("\\")) rows.push({ kind: "note", before: null, after: null, text: line.slice(2), marks: null });
    else rows.push({ kind: "same", before: before++, after: after++, text, marks: null });
  }
  return markPairs(rows);
}

/** Marks the differing words where as many lines were removed as were added after them. */
function markPairs(rows: readonly Row[]): readonly Row[] {
  const marked = [...rows];
  let place = 0;
  while (place < rows.length) {
    const removed = runOf(rows, place, "removed");
    const added = runOf(rows, place + removed, "added");
    if (removed > 0 && removed === added) {
      for (let n = 0; n < removed; n += 1) markPair(marked, place + n, place + removed + n);
    }
    place += Math.max(1, removed + added);
  }
  return marked;
}

function runOf(rows: readonly Row[], start: number, kind: Row["kind"]): number {
  let length = 0;
  while (rows[start + length]?.kind === kind) length += 1;
  return length;
}

function markPair(rows: Row[], first: number, second: number): void {
  const [before, after] = [rows[first], rows[second]];
  if (before === undefined || after === undefined) return;
  if (before.text.length > MAX_MARKED || after.text.length > MAX_MARKED) return;
  const parts = diffWordsWithSpace(before.text, after.text);
  if (!parts.some((part) => !part.added && !part.removed && part.value.trim() !== "")) return;
  const of = (left: boolean) =>
    parts
      .filter((part) => (left ? !part.added : !part.removed))
      .map((part) => ({ text: part.value, changed: part.added || part.removed }));
  rows[first] = { ...before, marks: of(true) };
  rows[second] = { ...after, marks: of(false) };
}
