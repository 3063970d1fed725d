import { describe, expect, test } from "vitest";
import { addressOf } from "../src/api/client";
import { readToken } from "../src/api/session";
import { checkLink } from "../src/parts/text";
import { parseAddress, pathTo } from "../src/router";
import { nameKey } from "../src/state/keys";
import { getDelay } from "../src/state/socket";

test("a path and its parts are inverse", () => {
  const parts = ["tasks", "a/b c", "ü?"];
  expect(parseAddress(pathTo(...parts)).parts).toEqual(parts);
});

test("the query is not part of the path", () => {
  const address = parseAddress("/changes/4?workspace=%2Fsrv");
  expect(address.parts).toEqual(["changes", "4"]);
  expect(address.query.get("workspace")).toBe("/srv");
});

test("an address that does not decode is taken as it is", () => {
  expect(parseAddress("/tasks/%zz").parts).toEqual(["tasks", "%zz"]);
});

test("the address of a route has its parameters encoded", () => {
  const made = addressOf("GET /api/tasks/{task}/output/{call}", { params: { task: "a/b", call: "c 1" } });
  expect(made).toBe("/api/tasks/a%2Fb/output/c%201");
  expect(addressOf("GET /api/tasks", { query: { text: "x y", state: undefined } })).toBe("/api/tasks?text=x+y");
});

describe("the token in the fragment", () => {
  test.each([
    ["#token=abc", "abc"],
    ["#x=1&token=abc", "abc"],
    ["#token=", null],
    ["", null],
  ])("%j", (fragment, token) => {
    expect(readToken(fragment)).toBe(token);
  });
});

describe("links", () => {
  test.each(["javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "/relative", "//host", "blob:x", "", undefined])(
    "%j is not followed",
    (address) => {
      expect(checkLink(address)).toBeNull();
    },
  );

  test("http and https are", () => {
    expect(checkLink("https://example.org/a")).toBe("https://example.org/a");
  });
});

test("keys have the names of the tables", () => {
  const key = { ctrlKey: false, metaKey: false, altKey: false };
  expect(nameKey({ ...key, key: "K", ctrlKey: true })).toBe("ctrl+k");
  expect(nameKey({ ...key, key: "?" })).toBe("?");
});

test("reconnecting waits longer each time, up to ten seconds", () => {
  expect([1, 2, 3, 20].map((failures) => getDelay(failures, 1))).toEqual([300, 600, 1200, 10_000]);
});
