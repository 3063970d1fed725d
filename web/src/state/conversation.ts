/** A conversation, built from the events of a task. Pure: the same events always give the same items. */

import type { Answer, AnyEvent, ChangeSet, End, Network, PermissionRequest, Question, ToolResult } from "../api/types";
import { countLines } from "../text/diff";

export type CallState = "queued" | "running" | "waiting" | "asking" | "ok" | "failed" | "denied" | "interrupted";

export type Call = Readonly<ReturnType<typeof makeCall>>;

/** A call of which nothing is known but its name. */
export function makeCall(id: string, name: string, server: string | null = null, started = "", seq = 0) {
  return {
    id,
    name,
    server,
    started,
    seq,
    args: null as unknown,
    purpose: null as string | null,
    state: "queued" as CallState,
    title: "",
    output: "",
    dropped: 0,
    network: [] as readonly Network[],
    result: null as ToolResult | null,
    request: null as PermissionRequest | null,
    answer: null as Answer | null,
    question: null as Question | null,
    change: null as ChangeSet | null,
    ended: null as string | null,
  };
}

/** Events that stand in the conversation as they are. */
export type ShownEvent = Extract<AnyEvent, { kind: "user" | "display" | "warning" | "notice" | "mode" | "network" | "process" | "error" }>;

export type Item = { key: string; seq: number } & (
  | { kind: "text" | "reasoning"; messageId: string; text: string }
  | { kind: "call"; call: Call }
  | { kind: "event"; event: ShownEvent }
  | { kind: "end"; end: End; turn: Turn }
);

/** What a turn did, for the line at its end. */
const NEW_TURN = {
  started: null as string | null,
  calls: 0,
  kept: 0,
  denied: 0,
  inputTokens: 0,
  outputTokens: 0,
  files: 0,
  added: 0,
  removed: 0,
  changes: [] as readonly number[],
  notCovered: [] as readonly string[],
};

export type Turn = Readonly<typeof NEW_TURN>;

export interface Conversation {
  items: readonly Item[];
  /** The place of each call in `items`. */
  places: ReadonlyMap<string, number>;
  /** Calls that wait for a person, in the order of the conversation. */
  waiting: readonly string[];
  /** Background processes that run. */
  running: readonly string[];
  turn: Turn;
  mode: string | null;
  seq: number;
  /** Whether a turn goes on. */
  active: boolean;
}

/** Output of a running call that the browser keeps: its end. The result has the rest. */
export const MAX_LIVE_OUTPUT = 400_000;
const KEPT_LIVE_OUTPUT = 300_000;

export const EMPTY: Conversation = {
  items: [],
  places: new Map(),
  waiting: [],
  running: [],
  turn: NEW_TURN,
  mode: null,
  seq: 0,
  active: false,
};

/** The conversation after more events. Events that it already has are skipped. */
export function addEvents(before: Conversation, events: readonly AnyEvent[]): Conversation {
  const fresh = events.filter((event) => event.seq > before.seq);
  if (fresh.length === 0) return before;
  const draft: Draft = { ...before, items: [...before.items], places: new Map(before.places) };
  for (const event of fresh) addEvent(draft, event);
  return { ...draft, waiting: listWaiting(draft.items), running: listRunning(draft.items) };
}

export function getCall(conversation: Conversation, id: string): Call | null {
  const place = conversation.places.get(id);
  const item = place === undefined ? undefined : conversation.items[place];
  return item?.kind === "call" ? item.call : null;
}

/** The lists are copied once for a batch of events, and each item at most once for each of its events. */
interface Draft extends Conversation {
  items: Item[];
  places: Map<string, number>;
}

function addEvent(draft: Draft, event: AnyEvent): void {
  const { seq } = event;
  if (seq <= draft.seq) return;
  draft.seq = seq;
  dropPause(draft.items);
  switch (event.kind) {
    case "text":
    case "reasoning":
      addPiece(draft.items, event);
      return;
    case "usage":
      addToTurn(draft, { inputTokens: event.input_tokens, outputTokens: event.output_tokens });
      return;
    case "end":
      draft.active = PAUSES.has(event.reason);
      draft.items.push({ kind: "end", key: `end ${seq}`, seq, end: event, turn: draft.turn });
      return;
    case "network":
      if (changeCall(draft, event.tool_call_id ?? "", (call) => ({ network: [...call.network, event] }))) return;
      break;
    case "user":
      if (!draft.active) draft.turn = { ...NEW_TURN, started: event.time };
      draft.active = true;
      break;
    case "notice":
      if (event.code === "INTERRUPTED") interruptCalls(draft);
      break;
    case "mode":
      draft.mode = event.mode;
      break;
    case "error":
      draft.active = false;
      break;
    case "display":
    case "warning":
    case "process":
      break;
    default:
      addToolEvent(draft, event);
      return;
  }
  draft.items.push({ kind: "event", key: `${event.kind} ${seq}`, seq, event });
}

/** A turn that waited for a person goes on, so the line that said so is no end. */
function dropPause(items: Item[]): void {
  const last = items.at(-1);
  if (last?.kind === "end" && PAUSES.has(last.end.reason)) items.pop();
}

/** Pieces of one message that follow each other are one item. */
function addPiece(items: Item[], { kind, seq, messageId, text }: Extract<AnyEvent, { kind: "text" | "reasoning" }>): void {
  const last = items.at(-1);
  if (last?.kind === kind && last.messageId === messageId) items[items.length - 1] = { ...last, text: last.text + text };
  else items.push({ kind, key: `text ${seq}`, seq, messageId, text });
}

type Counts = { [K in keyof Turn as Turn[K] extends number ? K : never]?: number };

function addToTurn(draft: Draft, counts: Counts): void {
  const sums = Object.entries(counts).map(([name, more]) => [name, draft.turn[name as keyof Counts] + more]);
  draft.turn = { ...draft.turn, ...(Object.fromEntries(sums) as Counts) };
}

type ToolEvent = Extract<AnyEvent, { tool_call_name: string }>;

function addToolEvent(draft: Draft, event: ToolEvent): void {
  const id = event.tool_call_id;
  const change = (build: (call: Call) => Partial<Call>) => changeCall(draft, id, build);
  if (!draft.places.has(id)) {
    const call = makeCall(id, event.toolName ?? event.tool_call_name, event.serverName ?? null, event.time, event.seq);
    draft.places.set(id, draft.items.length);
    draft.items.push({ kind: "call", key: `c${id}`, seq: event.seq, call });
  }
  switch (event.kind) {
    case "tool_call.start":
      addToTurn(draft, { calls: 1 });
      change(() => ({ args: event.args, purpose: event.purpose ?? null }));
      return;
    case "tool_call.running":
      change(() => ({ state: "running" }));
      return;
    case "tool_call.update":
      change((call) => ({
        ...appendOutput(call, event.output ?? ""),
        title: event.title ?? call.title,
        state: call.state === "queued" ? "running" : call.state,
      }));
      return;
    case "tool_call.permission-required":
      change(() => ({ request: event.permission_request, answer: null, state: "waiting" }));
      return;
    case "tool_call.permission-granted":
      if ((event.answer.by ?? null) === null) addToTurn(draft, { kept: 1 });
      change(() => ({ request: event.permission_request, answer: event.answer, state: "queued" }));
      return;
    case "tool_call.permission-denied":
      addToTurn(draft, { denied: 1 });
      change(() => ({ request: event.permission_request, answer: event.answer, state: "denied" }));
      return;
    case "tool_call.question-required": {
      const { question, options, multiple, custom } = event;
      change(() => ({ question: { toolCallId: id, question, options, multiple, custom }, state: "asking" }));
      return;
    }
    case "change":
      addChange(draft, event.change);
      change(() => ({ change: event.change }));
      return;
    case "tool_call.end":
    case "tool_call.error":
      change(() => ({ ...settle(event.result), ended: event.time, output: "", dropped: 0 }));
  }
}

function changeCall({ items, places }: Draft, id: string, build: (call: Call) => Partial<Call>): boolean {
  const place = places.get(id);
  const item = place === undefined ? undefined : items[place];
  if (place === undefined || item?.kind !== "call") return false;
  items[place] = { ...item, call: { ...item.call, ...build(item.call) } };
  return true;
}

function settle(result: ToolResult): Pick<Call, "result" | "state" | "title"> {
  const state = result.ok ? "ok" : DENIALS.has(result.error?.code ?? "") ? "denied" : "failed";
  return { result, state, title: result.title };
}

function addChange(draft: Draft, { changes, number, notCovered }: ChangeSet): void {
  addToTurn(draft, { files: changes.length, ...countLines(changes) });
  draft.turn = {
    ...draft.turn,
    changes: typeof number === "number" ? [...draft.turn.changes, number] : draft.turn.changes,
    notCovered: [...draft.turn.notCovered, ...(notCovered ?? [])],
  };
}

function interruptCalls(draft: Draft): void {
  for (const id of draft.places.keys()) {
    changeCall(draft, id, ({ state }) => ({ state: state === "running" ? "interrupted" : state }));
  }
}

function listWaiting(items: readonly Item[]): readonly string[] {
  return items.flatMap((item) => (item.kind === "call" && (item.call.state === "waiting" || item.call.state === "asking") ? [item.call.id] : []));
}

function listRunning(items: readonly Item[]): readonly string[] {
  const running = new Set<string>();
  for (const item of items) {
    if (item.kind !== "event" || item.event.kind !== "process") continue;
    if (item.event.state === "started") running.add(item.event.process);
    else running.delete(item.event.process);
  }
  return [...running];
}

const PAUSES = new Set<End["reason"]>(["parked", "question"]);
const DENIALS = new Set(["PERMISSION_DENIED", "POLICY_DENIED"]);

function appendOutput(call: Call, output: string): Pick<Call, "output" | "dropped"> {
  const joined = call.output + output;
  if (joined.length <= MAX_LIVE_OUTPUT) return { output: joined, dropped: call.dropped };
  const cut = joined.indexOf("\n", joined.length - KEPT_LIVE_OUTPUT) + 1 || joined.length - KEPT_LIVE_OUTPUT;
  return { output: joined.slice(cut), dropped: call.dropped + cut };
}
