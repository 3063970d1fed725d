import { describe, expect, test } from "vitest";
import { parseAnsi, stripAnsi } from "../src/text/ansi";
import { parseDiff } from "../src/text/diff";
import { formatAge, formatDuration, formatSize } from "../src/text/format";
import { findLanguage } from "../src/text/languages";
import { hasMixedScripts, makeVisible } from "../src/text/visible";

const ESC = "\u001b";

describe("terminal output", () => {
  test("keeps colours", () => {
    const [line] = parseAnsi(`${ESC}[1;31mred${ESC}[0m plain`).lines;
    expect(line).toMatchObject([
      { text: "red", colour: 1, bold: true },
      { text: " plain", colour: null, bold: false },
    ]);
  });

  test("carries a colour on to the next line", () => {
    expect(parseAnsi(`${ESC}[32ma\nb`).lines[1]).toMatchObject([{ text: "b", colour: 2 }]);
  });

  test.each([
    [`${ESC}[38;5;196mx`, "#ff0000"],
    [`${ESC}[38;2;1;2;3mx`, "#010203"],
    [`${ESC}[94mx`, 12],
  ])("reads the colour of %j", (text, colour) => {
    expect(parseAnsi(text).lines[0]).toMatchObject([{ text: "x", colour }]);
  });

  test.each([
    `${ESC}]8;;https://example.org${ESC}\\`,
    `${ESC}]0;title\u0007`,
    `${ESC}]52;c;aGk=\u0007`,
    `${ESC}[2J`,
    `${ESC}[?1049h`,
    `${ESC}Pq#0;2;0;0;0${ESC}\\`,
    `${ESC}c`,
    "\u009b2J",
    "\u0007\u0008\u0000",
    `${ESC}[31`,
  ])("removes %j", (escape) => {
    expect(stripAnsi(`a${escape}`)).toBe("a");
    expect(parseAnsi(`a${escape}`).lines).toMatchObject([[{ text: "a" }]]);
  });

  test("shows the last state of a progress bar", () => {
    expect(parseAnsi("10 %\r50 %\r100 %\r\ndone").lines.map((line) => line[0]?.text)).toEqual(["100 %", "done"]);
  });
});

describe("diffs", () => {
  const DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two 2\n+two 3\n three\n";

  test("have numbered rows and marked words", () => {
    const [file] = parseDiff(DIFF);
    expect(file).toMatchObject({ path: "src/a.py", from: null, added: 1, removed: 1 });
    const rows = file?.hunks[0]?.rows ?? [];
    expect(rows.map((row) => [row.kind, row.before, row.after])).toEqual([
      ["same", 1, 1],
      ["removed", 2, null],
      ["added", null, 2],
      ["same", 3, 3],
    ]);
    expect(rows[2]?.marks?.filter((part) => part.changed).map((part) => part.text)).toEqual(["3"]);
  });

  test("of several files are split", () => {
    const second = "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n";
    expect(parseDiff(DIFF + second).map((file) => file.path)).toEqual(["src/a.py", "new.txt"]);
  });

  test("of a deleted file keep its path", () => {
    expect(parseDiff("--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n")).toMatchObject([{ path: "old.txt", removed: 1 }]);
  });

  test("that were cut show what is there", () => {
    const cut = DIFF.slice(0, DIFF.indexOf(" three"));
    expect(parseDiff(cut)).toMatchObject([{ path: "src/a.py", added: 1, removed: 1 }]);
  });

  test("without hunks are notes", () => {
    const note = "Binary files a/x.png and b/x.png differ";
    expect(parseDiff(note)).toMatchObject([{ hunks: [], notes: [note] }]);
  });

  test("are nothing if they are empty", () => {
    expect(parseDiff("")).toEqual([]);
  });

  test("keep a removed line that looks like a header", () => {
    const text = "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- not a header\n stays\n";
    expect(parseDiff(text)).toMatchObject([{ path: "x", removed: 1 }]);
  });
});

test("lines of a hunk that look like the headers of a file stay lines", () => {
  const text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n \n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n";
  const [x, y, ...rest] = parseDiff(text);
  expect(rest).toEqual([]);
  expect(x).toMatchObject({ path: "x", added: 1, removed: 1 });
  expect(x?.hunks[0]?.rows.map((row) => row.text)).toEqual(["-- old", "++ new", ""]);
  expect(y).toMatchObject({ path: "y", added: 1, removed: 1 });
});

describe("hidden characters", () => {
  test.each([
    ["rm\u202e -rf", "rm\\u202e -rf"],
    ["a\u200bb", "a\\u200bb"],
    ["a\rb", "a\\rb"],
    ["end  ", "end␣␣"],
    ["\u{e0041}", "\\u{e0041}"],
    ["plain é 漢", "plain é 漢"],
  ])("in %j are written out", (text, shown) => {
    expect(makeVisible(text)).toBe(shown);
  });

  test("a host of several scripts is told from a plain one", () => {
    expect(hasMixedScripts("ex\u0430mple.org")).toBe(true);
    expect(hasMixedScripts("example.org")).toBe(false);
  });
});

test.each([
  [40, "0.04 s"],
  [1840, "1.8 s"],
  [38_000, "38 s"],
  [125_000, "2 m 5 s"],
])("%d ms are %s", (milliseconds, shown) => {
  expect(formatDuration(milliseconds)).toBe(shown);
});

test("sizes and ages are short", () => {
  expect([formatSize(512), formatSize(1_234_000)]).toEqual(["512 B", "1.2 MB"]);
  expect(formatAge("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:02:10Z"))).toBe("2 m");
});

test("the language of a file follows from its name", () => {
  expect(["a/b.py", "Dockerfile", "x.unknown", "none"].map(findLanguage)).toEqual(["python", "dockerfile", null, null]);
});
