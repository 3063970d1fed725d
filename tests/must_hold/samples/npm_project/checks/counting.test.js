const test = require("node:test");
const assert = require("node:assert");
const { count } = require("counting");

test("words are counted", () => assert.strictEqual(count("a b  c"), 3));
