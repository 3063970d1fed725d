import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Change, PermissionRequest, PreviewRun } from "../src/api/types";
import { describeCall } from "../src/text/calls";
import {
  canApprove,
  describeAge,
  describeEffect,
  describeNovelty,
  describeOutdated,
  hasRun,
  listChanges,
  listRemarks,
  summarizeRun,
} from "../src/text/permission";

const SAMPLES = JSON.parse(
  readFileSync(new URL("../../src/handrail/protocol/samples.json", import.meta.url), "utf-8"),
) as { permission_request: PermissionRequest };
const WRITE = SAMPLES.permission_request;
const RUN: PreviewRun = { sealed: "p_1", exitCode: 0, durationMs: 1800, files: 4, deleted: 1 };

function command(run: Partial<PreviewRun> | null, more: Partial<PermissionRequest> = {}): PermissionRequest {
  const preview = run === null ? null : { kind: "run" as const, text: "", tried: { ...RUN, ...run } };
  return { ...WRITE, command: "make", toolName: "exec", preview, ...more };
}

function change(path: string, more: Partial<Change> = {}): Change {
  return { path, action: "modified", ...more };
}

describe("the effect of a request", () => {
  test.each([
    [command({}), "Ran in a disposable copy: exit 0 in 1.8 s. Your files are untouched."],
    [command({ exitCode: 2 }), "Failed in a disposable copy: exit 2 in 1.8 s. Your files are untouched."],
    [
      command({ exitCode: 1, blocked: ["example.org:443"] }),
      "Failed in a disposable copy: exit 1 in 1.8 s — the copy has no network, so the real run may differ. Your files are untouched.",
    ],
    [
      command({ ending: "timeout", exitCode: null }),
      "Ran in a disposable copy: it took too long, and was stopped after 1.8 s; no change is kept. Your files are untouched.",
    ],
    [WRITE, "Your files are untouched. If you approve, handrail makes this change. Undo can revert it."],
    [
      command(null, { preview: { kind: "none", text: "needs the network (git push)" }, hosts: ["example.org:443"] }),
      "No preview: needs the network (git push). Nothing has run. If you approve, it runs for real; what it sends cannot be undone.",
    ],
    [
      command(null, { background: true }),
      "No preview. Nothing has run. If you approve, it runs for real; it is not covered by undo.",
    ],
  ])("says what happened to the files (%#)", (request, words) => {
    expect(describeEffect(request)).toBe(words);
  });

  test("only the output of a stopped command can be kept", () => {
    expect(canApprove(command({ ending: "memory" }))).toBe(false);
    expect(canApprove(command({}))).toBe(true);
    expect(canApprove(WRITE)).toBe(true);
  });

  test("a diff has not run", () => {
    expect([hasRun(WRITE), hasRun(command({}))]).toEqual([false, true]);
  });

  test("an outdated preview names the files", () => {
    expect(describeOutdated(["a", "b", "c", "d"])).toBe("Out of date: a, b, c and 1 more changed since. Try again.");
    expect(describeOutdated([""])).toBe("Out of date: the preview is gone. Try again.");
  });

  test("a preview has an age", () => {
    const made = Date.parse("2026-01-01T00:00:00Z");
    expect(describeAge(WRITE, made + 5_000)).toBe("Preview from just now.");
    expect(describeAge(WRITE, made + 180_000)).toBe("Preview from 3 m ago.");
  });
});

describe("the changes of a preview", () => {
  test("leave out folders of other changes and old names, and end with layout", () => {
    const changes = [
      change("src", { action: "created", kind: "folder" }),
      change("src/layout.py", { layoutOnly: true }),
      change("src/new.py", { action: "renamed", renamedFrom: "src/old.py" }),
      change("src/old.py", { action: "deleted" }),
      change("empty", { action: "created", kind: "folder" }),
    ];
    expect(listChanges({ ...RUN, changes }).map((one) => one.path)).toEqual(["src/new.py", "empty", "src/layout.py"]);
  });

  test("have remarks, the harmful ones marked", () => {
    const remarks = (one: Change) => listRemarks(one).map((remark) => [remark.text, remark.harm]);
    expect(remarks(change("a", { action: "deleted" }))).toEqual([["deletes!", true]]);
    expect(remarks(change("a", { executable: true, binary: true }))).toEqual([
      ["executable", true],
      ["binary", false],
    ]);
    expect(remarks(change("a", { kind: "link", target: "/etc/passwd", outside: true }))).toEqual([
      ["link → /etc/passwd (outside)", true],
    ]);
    expect(remarks(change("a", { action: "mode", mode: 0o755 }))).toEqual([["mode 755", true]]);
  });

  test("are summed up", () => {
    expect(summarizeRun(RUN)).toBe("4 files, 1 deletion");
    expect(summarizeRun({ ...RUN, files: 1, deleted: 0 })).toBe("1 file");
  });
});

test("what is unusual names its basis", () => {
  expect(describeNovelty({ approvals: 9, hosts: ["x.org:443"], programs: [], folders: [] })).toBe(
    "Unusual here, compared with the last 9 approvals: new host x.org:443.",
  );
  expect(describeNovelty({ changes: 5, deletes: true, folders: ["infra/", "ops/"] })).toBe(
    "Unusual here, compared with the last 5 changes: first deletion; new folders infra/, ops/.",
  );
});

test.each([
  ["grep", { pattern: "round(", path: "src" }, '"round(" in src'],
  ["find", { pattern: "*.py" }, "*.py"],
  ["read", { path: "a.py", limit: 3 }, "a.py"],
  ["exec", { command: "make\nmake test" }, "make ⏎ make test"],
  ["process", { action: "stop", sessionId: "p-7" }, "stop p-7"],
  ["custom", { n: 1, text: "hello" }, "hello"],
  ["custom", null, ""],
])("%s %j is about %s", (name, args, words) => {
  expect(describeCall(name, args)).toBe(words);
});
