import { describe, expect, test } from "vitest";
import { checkArgs, listFields, parseArgs, putArg, readProblems, startArgs, writeCurl, writePython } from "../src/text/schema";
import { readConflict } from "../src/text/undo";

const EDIT = {
  type: "object",
  properties: {
    path: { type: "string", description: "File to edit." },
    replaceAll: { type: "boolean", default: false },
    limit: { anyOf: [{ type: "integer", minimum: 1 }, { type: "null" }], default: null },
    mode: { enum: ["fast", "slow"] },
    names: { type: "array", items: { type: "string" } },
    steps: { type: "array", items: { type: "object", properties: { status: { enum: ["done"] } }, required: ["status"] } },
    newText: { type: "string" },
    body: { type: "string", maxLength: 50 },
  },
  required: ["path", "newText", "names"],
  additionalProperties: false,
};

describe("the fields of a schema", () => {
  test("required ones come first, in their order", () => {
    expect(listFields(EDIT).map((field) => field.name).slice(0, 3)).toEqual(["path", "names", "newText"]);
  });

  test("each gets the control that fits", () => {
    const kinds = Object.fromEntries(listFields(EDIT).map((field) => [field.name, field.kind]));
    expect(kinds).toEqual({ path: "line", newText: "text", names: "lines", replaceAll: "flag", limit: "number", mode: "choice", steps: "json", body: "text" });
  });

  test("null is not shown as a default", () => {
    const fields = new Map(listFields(EDIT).map((field) => [field.name, field.otherwise]));
    expect(fields.get("limit")).toBe("");
    expect(fields.get("replaceAll")).toBe("false");
  });

  test("a schema without properties has no fields", () => expect(listFields({ type: "object" })).toEqual([]));
});

describe("the arguments", () => {
  test("long texts begin empty, short ones are missing", () => {
    expect(startArgs(listFields(EDIT))).toEqual({ names: [], newText: "" });
  });

  test("undefined removes an argument", () => expect(putArg({ a: 1, b: 2 }, "a", undefined)).toEqual({ b: 2 }));

  test("a good call has no problems", () => {
    expect(checkArgs(EDIT, { path: "a", newText: "", names: [], limit: null }).size).toBe(0);
  });

  test("each problem is at its field, once", () => {
    const problems = checkArgs(EDIT, { newText: "", names: [1], limit: 0, mode: "no", other: 1 });
    expect(Object.fromEntries(problems)).toEqual({
      path: "is required",
      names: '0: type "number" is invalid. Expected "string"',
      limit: "0 is less than 1",
      mode: 'does not match any of ["fast","slow"]',
      other: "is not an argument",
    });
  });

  test("a problem deep inside names its place", () => {
    const problems = checkArgs(EDIT, { path: "a", newText: "", names: [], steps: [{ status: "done" }, { status: "x" }] });
    expect(problems.get("steps")).toBe('1.status: does not match any of ["done"]');
  });

  test("a schema that cannot be read leaves the check to the server", () => {
    expect(checkArgs({ type: "object", properties: { a: { $ref: "#/$defs/none" } } }, { a: 1 }).size).toBe(0);
  });

  test("problems of the server are found by field", () => {
    const problems = readProblems([{ field: "path", problem: "path is required" }, { field: "items[0].text", problem: "too long" }, { field: "", problem: "denied" }, 3]);
    expect(Object.fromEntries(problems)).toEqual({ path: "path is required", items: "too long", "": "denied\n3" });
  });

  test("JSON has to be one object", () => {
    expect(parseArgs('{"a": 1}')).toEqual({ args: { a: 1 } });
    expect(parseArgs("[1]")).toEqual({ problem: "Arguments are one JSON object." });
    expect(parseArgs("{")).toHaveProperty("problem");
  });
});

describe("the call elsewhere", () => {
  test("curl quotes for the shell", () => {
    const text = writeCurl("http://h", "/api/call", { name: "exec", args: { command: "echo 'a' $B" } });
    expect(text).toContain(`-d '{"name":"exec","args":{"command":"echo '\\''a'\\'' $B"}}'`);
  });

  test("Python has its own constants", () => {
    const text = writePython("edit", { path: 'a"b', all: true, limit: null, names: ["x", false], deep: { one: 1.5 } });
    expect(text).toContain('rail.call("edit", {"path": "a\\"b", "all": True, "limit": None, "names": ["x", False], "deep": {"one": 1.5}})');
  });
});

describe("the conflict of an undo", () => {
  test("later changes come once, the latest first", () => {
    const details = { conflicts: [{ path: "a", changedBy: [2, 5] }, { path: "b", changedBy: [5] }], choices: ["later", "lines"] };
    expect(readConflict("CONFLICT", details)).toEqual({ files: [{ path: "a", by: [2, 5] }, { path: "b", by: [5] }], later: [5, 2], choices: ["later", "lines"] });
  });

  test("another failure is none", () => {
    expect(readConflict("NO_CHANGE", null)).toBeNull();
    expect(readConflict("CONFLICT", "text")).toBeNull();
  });
});
