/** A unified diff as files, hunks and rows. */

import { diffWordsWithSpace } from "diff";
import type { Change } from "../api/types";

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
const KINDS: Readonly<Record<string, Row["kind"]>> = { "+": "added", "-": "removed", "\\": "note", " ": "same", "": "same" };
const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
/** Lines that begin a file, if they stand in no hunk. */
const FIRST = /^(diff --git|Binary|rename from|old mode|---) /;

/** The lines added and removed by changes together. */
export function countLines(changes: readonly Change[]): { added: number; removed: number } {
  const sum = (key: "added" | "removed") => changes.reduce((total, one) => total + (one[key] ?? 0), 0);
  return { added: sum("added"), removed: sum("removed") };
}

interface OpenFile {
  before: string | null;
  after: string | null;
  hunks: { header: string; rows: Row[] }[];
  notes: string[];
}

/** The files of a diff. A text that is no diff becomes notes of one file. */
export function parseDiff(text: string): readonly FileDiff[] {
  const files: OpenFile[] = [];
  let [before, after, lastBefore, lastAfter] = [0, 0, 0, 0];
  for (const line of text.trim() === "" ? [] : text.replace(/\n$/, "").split("\n")) {
    const rows = files.at(-1)?.hunks.at(-1)?.rows;
    const kind = KINDS[line.charAt(0)];
    // The header of a hunk says how many rows follow, whatever they look like.
    const isOpen = before < lastBefore || after < lastAfter;
    if (rows !== undefined && kind !== undefined && (isOpen || kind === "note")) {
      rows.push({
        kind,
        before: kind === "same" || kind === "removed" ? before++ : null,
        after: kind === "same" || kind === "added" ? after++ : null,
        text: line.slice(kind === "note" ? 2 : 1),
        marks: null,
      });
      continue;
    }
    let file = files.at(-1);
    if (file === undefined || (FIRST.test(line) && isAnother(file, line))) {
      file = { before: null, after: null, hunks: [], notes: [] };
      files.push(file);
    }
    const numbers = HUNK.exec(line);
    if (numbers !== null) {
      const [start = 1, oldLines = 1, newStart = 1, newLines = 1] = numbers.slice(1).map((one: string | undefined) => Number(one ?? 1));
      [before, after, lastBefore, lastAfter] = [start, newStart, start + oldLines, newStart + newLines];
      file.hunks.push({ header: numbers[0], rows: [] });
    } else if (line.startsWith("--- ")) file.before = cleanPath(line);
    else if (line.startsWith("+++ ")) file.after = cleanPath(line);
    else if (line !== "") file.notes.push(line);
  }
  return files.map(finishFile);
}

/** Whether a first line begins another file, since this one has a first line of its kind. */
function isAnother({ before, after, hunks, notes }: OpenFile, line: string): boolean {
  return before !== null || after !== null || hunks.length > 0 || line.startsWith("diff") || (notes[0] ?? "").startsWith("Binary");
}

function finishFile({ before, after, hunks, notes }: OpenFile): FileDiff {
  const rows = hunks.flatMap((hunk) => hunk.rows);
  const count = (kind: Row["kind"]) => rows.filter((row) => row.kind === kind).length;
  const path = after ?? before ?? "";
  const marked = hunks.map((hunk) => ({ ...hunk, rows: markPairs(hunk.rows) }));
  return { path, from: before === path ? null : before, added: count("added"), removed: count("removed"), hunks: marked, notes };
}

/** The path of a header. Null: there is no such file. */
function cleanPath(line: string): string | null {
  const name = line.slice(4).split("\t", 1)[0] ?? "";
  return name === "/dev/null" ? null : name.replace(/^[ab]\//, "");
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
