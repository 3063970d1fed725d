import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { AnyEvent } from "../src/api/types";
import { addEvents, type Conversation, EMPTY, getCall } from "../src/state/conversation";

const SAMPLES = JSON.parse(
  readFileSync(new URL("../../src/handrail/protocol/samples.json", import.meta.url), "utf-8"),
) as Record<string, unknown>;

let seq = 0;
function sample(kind: string, change: Record<string, unknown> = {}): AnyEvent {
  seq += 1;
  return { ...(SAMPLES[`event.${kind}`] as object), ...change, seq } as unknown as AnyEvent;
}

function tool(kind: string, id = "c1", change: Record<string, unknown> = {}): AnyEvent {
  return sample(`tool_call.${kind}`, { tool_call_id: id, ...change });
}

function build(...events: AnyEvent[]): Conversation {
  return addEvents(EMPTY, events);
}

function stateOf(conversation: Conversation, id = "c1"): string | undefined {
  return getCall(conversation, id)?.state;
}

describe("text", () => {
  test("pieces of one message become one item", () => {
    const made = build(sample("text", { messageId: "m", text: "Hello, " }), sample("text", { messageId: "m", text: "you." }));
    expect(made.items).toMatchObject([{ kind: "text", text: "Hello, you." }]);
  });

  test("another message starts another item", () => {
    const made = build(sample("text", { messageId: "m" }), sample("text", { messageId: "n" }));
    expect(made.items).toHaveLength(2);
  });

  test("text after a call is an item below the call", () => {
    const made = build(sample("text", { messageId: "m" }), tool("start"), sample("text", { messageId: "m" }));
    expect(made.items.map((item) => item.kind)).toEqual(["text", "call", "text"]);
  });
});

describe("calls", () => {
  test("a call is one card from its start to its result", () => {
    const start = build(tool("start"));
    expect(stateOf(start)).toBe("queued");
    const running = addEvents(start, [tool("running"), tool("update", "c1", { output: "one\n" }), tool("update", "c1", { output: "two\n" })]);
    expect(stateOf(running)).toBe("running");
    expect(getCall(running, "c1")?.output).toBe("one\ntwo\n");
    const ended = addEvents(running, [tool("end")]);
    expect(stateOf(ended)).toBe("ok");
    expect(ended.items).toHaveLength(1);
  });

  test("a request waits until its answer", () => {
    const asked = build(tool("start"), tool("permission-required"));
    expect(stateOf(asked)).toBe("waiting");
    expect(asked.waiting).toEqual(["c1"]);
    const granted = addEvents(asked, [tool("permission-granted")]);
    expect(granted.waiting).toEqual([]);
    expect(granted.turn.kept).toBe(1);
  });

  test("a refused call stays denied when its result comes", () => {
    const made = build(tool("start"), tool("permission-required"), tool("permission-denied"), tool("error"));
    expect(stateOf(made)).toBe("denied");
    expect(made.turn.denied).toBe(1);
  });

  test("a question waits until its result", () => {
    const asked = build(tool("start"), tool("question-required"));
    expect(stateOf(asked)).toBe("asking");
    expect(addEvents(asked, [tool("end")]).waiting).toEqual([]);
  });

  test("requests wait in the order of their calls", () => {
    const made = build(tool("start", "a"), tool("start", "b"), tool("permission-required", "b"), tool("permission-required", "a"));
    expect(made.waiting).toEqual(["a", "b"]);
  });

  test("a call that a crash cut off is interrupted", () => {
    const made = build(tool("start"), tool("running"), sample("notice"));
    expect(stateOf(made)).toBe("interrupted");
  });

  test("the live output of a call is bounded", () => {
    const line = `${"x".repeat(999)}\n`;
    const made = build(tool("start"), ...Array.from({ length: 900 }, () => tool("update", "c1", { output: line })));
    const call = getCall(made, "c1");
    expect(call?.output.length).toBeLessThanOrEqual(400_000);
    expect((call?.output.length ?? 0) + (call?.dropped ?? 0)).toBe(900_000);
  });
});

test("events that are here already are skipped", () => {
  const events = [sample("user"), sample("text")];
  const made = addEvents(EMPTY, events);
  expect(addEvents(made, events)).toBe(made);
});

test("events in batches give the same conversation as one by one", () => {
  const kinds = Object.keys(SAMPLES).filter((name) => name.startsWith("event."));
  const events = kinds.map((name) => sample(name.slice("event.".length)));
  const single = events.reduce((before, event) => addEvents(before, [event]), EMPTY);
  expect(addEvents(EMPTY, events)).toEqual(single);
});

test("the line at the end sums up the turn", () => {
  const made = build(sample("user"), tool("start"), sample("change", { tool_call_id: "c1" }), sample("usage"), sample("end"));
  const end = made.items.at(-1);
  expect(end).toMatchObject({ kind: "end", turn: { calls: 1, added: 4, removed: 1, changes: [1], inputTokens: 2400 } });
});

test("a new prompt starts a new sum", () => {
  const made = build(sample("user"), tool("start"), sample("end", { reason: "done" }), sample("user"));
  expect(made.turn.calls).toBe(0);
});
