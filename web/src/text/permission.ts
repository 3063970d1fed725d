/** The words of a permission request: the same as in the terminal. Pure. */

import type { Answer, Change, Novelty, PermissionRequest, PreviewRun } from "../api/types";
import { formatAge, formatDuration, formatPlural } from "./format";

export type AnswerKind = Answer["kind"];

const UNTOUCHED = "Your files are untouched.";
const STOPPED: Readonly<Record<string, string>> = {
  timeout: "took too long",
  memory: "needed too much memory",
  processes: "started too many processes",
  output: "printed too much",
  cancelled: "was cancelled",
};

/** Whether the result exists, so that it is kept or dropped. Otherwise the call is approved or rejected. */
export function hasRun(request: PermissionRequest): boolean {
  return request.preview?.tried != null;
}

export function describeSubject(request: PermissionRequest): string {
  return request.command ?? request.description;
}

export function nameTool(request: PermissionRequest): string {
  return request.serverName === "handrail" ? request.toolName : `${request.toolName} (${request.serverName})`;
}

/** The folders that an approval opens. Each stands before its pattern. */
export function listFolders(request: PermissionRequest): readonly string[] {
  return (request.pattern ?? []).filter((_, place) => place % 2 === 0);
}

/** What happened so far, and to the person's files. */
export function describeEffect(request: PermissionRequest): string {
  const run = request.preview?.tried ?? null;
  if (run !== null) return describeEnd(run);
  if (request.preview?.kind === "diff") return `${UNTOUCHED} If you approve, handrail makes this change. Undo can revert it.`;
  if (request.preview?.kind === "input") {
    return "Nothing has been sent. If you approve, it is sent for real; undo does not cover its effects.";
  }
  if (request.kind === "external_directory") {
    const access = request.access === "write" ? "reading and writing" : "reading";
    return `Approval opens a folder outside the workspace, for ${access}.`;
  }
  const why = request.preview?.kind === "none" ? request.preview.text.replace(/\.$/, "") : "";
  return `No preview${why === "" ? "" : `: ${why}`}. Nothing has run. If you approve, it runs for real${describeUndo(request)}.`;
}

function describeUndo(request: PermissionRequest): string {
  if (request.preview?.readOnly === true) return "";
  if (request.background === true) return "; it is not covered by undo";
  if ((request.hosts ?? []).length > 0) return "; what it sends cannot be undone";
  if (request.tier === 3) return "; undo reverts its changes";
  return request.command == null ? "" : "; its result says what undo covers";
}

function describeEnd(run: PreviewRun): string {
  const seconds = formatDuration(run.durationMs);
  const ending = run.ending ?? "exit";
  if (ending !== "exit") {
    const why = STOPPED[ending] ?? `was stopped (${ending})`;
    return `Ran in a disposable copy: it ${why}, and was stopped after ${seconds}; no change is kept. ${UNTOUCHED}`;
  }
  if (run.exitCode !== 0) {
    const network = (run.blocked ?? []).length > 0 ? " — the copy has no network, so the real run may differ" : "";
    return `Failed in a disposable copy: exit ${String(run.exitCode)} in ${seconds}${network}. ${UNTOUCHED}`;
  }
  return `Ran in a disposable copy: exit 0 in ${seconds}. ${UNTOUCHED}`;
}

/** Whether anything but the output can be kept. */
export function canApprove(request: PermissionRequest): boolean {
  const run = request.preview?.tried ?? null;
  return run === null || (run.ending ?? "exit") === "exit";
}

export function describeOutdated(paths: readonly string[]): string {
  if (paths.includes("")) return "Out of date: the preview is gone. Try again.";
  const more = paths.length > 3 ? ` and ${paths.length - 3} more` : "";
  return `Out of date: ${paths.slice(0, 3).join(", ")}${more} changed since. Try again.`;
}

export function describeAge(request: PermissionRequest, now: number): string {
  const time = request.preview?.time ?? null;
  if (time === null) return "";
  return now - Date.parse(time) < 10_000 ? "Preview from just now." : `Preview from ${formatAge(time, now)} ago.`;
}

/** The changes without folders of other changes and without old names of renamed files, layout last. */
export function listChanges(run: PreviewRun): readonly Change[] {
  const changes = run.changes ?? [];
  const renamed = new Set(changes.map((change) => change.renamedFrom ?? null));
  const isParent = (path: string) => changes.some((change) => change.path.startsWith(`${path}/`));
  return changes
    .filter((change) => change.kind !== "folder" || !isParent(change.path))
    .filter((change) => change.action !== "deleted" || !renamed.has(change.path))
    .toSorted((a, b) => Number(a.layoutOnly ?? false) - Number(b.layoutOnly ?? false));
}

const ACTIONS: Partial<Record<Change["action"], readonly [letter: string, verb: string]>> = {
  created: ["A", "adds"],
  deleted: ["D", "deletes"],
  renamed: ["R", "renames"],
};

export function letterOf(change: Change): readonly [letter: string, verb: string] {
  return ACTIONS[change.action] ?? ["M", "changes"];
}

/** Remarks on a change, the most important first. */
export function listRemarks(change: Change): readonly { text: string; harm: boolean }[] {
  const remarks: { text: string; harm: boolean }[] = [];
  const add = (text: string, harm: boolean) => remarks.push({ text, harm });
  if (change.action === "deleted") add("deletes!", true);
  if (change.replaces != null) add(`was a ${change.replaces}!`, true);
  if (change.executable === true) add("executable", true);
  if (change.kind === "link" && change.action !== "deleted") {
    add(`link → ${change.target ?? "?"}${change.outside === true ? " (outside)" : ""}`, change.outside === true);
  }
  if (change.action === "mode" && change.mode != null) add(`mode ${change.mode.toString(8)}`, true);
  if (change.shared === true) add("has hard links", true);
  if (change.binary === true) add("binary", false);
  if (change.layoutOnly === true) add("layout only", false);
  return remarks;
}

/** `4 files, 1 deletion`. */
export function summarizeRun(run: PreviewRun): string {
  const files = formatPlural(run.files ?? 0, "file");
  const deleted = run.deleted ?? 0;
  return deleted > 0 ? `${files}, ${formatPlural(deleted, "deletion")}` : files;
}

/** How a call differs from earlier ones in its workspace. */
export function describeNovelty(novelty: Novelty): string {
  const hosts = novelty.hosts ?? [];
  const programs = novelty.programs ?? [];
  const folders = novelty.folders ?? [];
  const facts = novelty.deletes === true ? ["first deletion"] : [];
  for (const [noun, names] of [["host", hosts], ["program", programs], ["folder", folders]] as const) {
    if (names.length > 0) facts.push(nameNew(noun, names));
  }
  const basis: string[] = [];
  if (hosts.length > 0 || programs.length > 0) basis.push(`${novelty.approvals ?? 0} approvals`);
  if (novelty.deletes === true || folders.length > 0) basis.push(`${novelty.changes ?? 0} changes`);
  return `Unusual here, compared with the last ${basis.join(" and ")}: ${facts.join("; ")}.`;
}

function nameNew(noun: string, names: readonly string[]): string {
  const more = names.length > 5 ? ` and ${names.length - 5} more` : "";
  return `new ${noun}${names.length > 1 ? "s" : ""} ${names.slice(0, 5).join(", ")}${more}`;
}

const VERDICTS: Readonly<Record<string, string>> = { allow: "allowed", confirm: "needs approval", deny: "denied" };

export function nameVerdict(verdict: string): string {
  return VERDICTS[verdict] ?? verdict;
}

/** What was answered, for the line that stays. */
export function describeAnswer(kind: AnswerKind, ran: boolean): string {
  if (kind === "output") return "took only the output of";
  if (kind === "deny") return ran ? "dropped" : "rejected";
  return ran ? "kept" : "approved";
}
