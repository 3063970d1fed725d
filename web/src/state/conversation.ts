/** A conversation, built from the events of a task. Pure: the same events always give the same items. */

import type {
  Answer,
  AnyEvent,
  ChangeSet,
  Display,
  End,
  ErrorEvent,
  Network,
  PermissionRequest,
  Process,
  Question,
  ToolResult,
  Usage,
} from "../api/types";

export type CallState = "queued" | "running" | "waiting" | "asking" | "ok" | "failed" | "denied" | "interrupted";

export interface Call {
  id: string;
  name: string;
  server: string | null;
  args: unknown;
  purpose: string | null;
  state: CallState;
  title: string;
  output: string;
  dropped: number;
  result: ToolResult | null;
  request: PermissionRequest | null;
  answer: Answer | null;
  question: Question | null;
  change: ChangeSet | null;
  network: readonly Network[];
  started: string;
  ended: string | null;
  seq: number;
}

/** A call of which nothing is known but its name. */
export function makeCall(id: string, name: string, server: string | null = null, started = "", seq = 0): Call {
  const empty = { result: null, request: null, answer: null, question: null, change: null, ended: null };
  return { id, name, server, args: null, purpose: null, state: "queued", title: "", output: "", dropped: 0, network: [], started, seq, ...empty };
}

export type Item =
  | { kind: "user"; key: string; seq: number; time: string; text: string }
  | { kind: "text" | "reasoning"; key: string; seq: number; messageId: string; text: string }
  | { kind: "call"; key: string; seq: number; call: Call }
  | { kind: "display"; key: string; seq: number; display: Display }
  | { kind: "note"; key: string; seq: number; level: "info" | "warning"; code: string | null; text: string }
  | { kind: "network"; key: string; seq: number; network: Network }
  | { kind: "process"; key: string; seq: number; process: Process }
  | { kind: "error"; key: string; seq: number; error: ErrorEvent }
  | { kind: "end"; key: string; seq: number; end: End; turn: Turn };

/** What a turn did, for the line at its end. */
export interface Turn {
  started: string | null;
  calls: number;
  kept: number;
  denied: number;
  inputTokens: number;
  outputTokens: number;
  files: number;
  added: number;
  removed: number;
  changes: readonly number[];
  notCovered: readonly string[];
}

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

const NEW_TURN: Turn = {
  started: null,
  calls: 0,
  kept: 0,
  denied: 0,
  inputTokens: 0,
  outputTokens: 0,
  files: 0,
  added: 0,
  removed: 0,
  changes: [],
  notCovered: [],
};

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
  const draft = new Draft(before);
  for (const event of fresh) draft.add(event);
  return draft.finish();
}

export function getCall(conversation: Conversation, id: string): Call | null {
  const place = conversation.places.get(id);
  const item = place === undefined ? undefined : conversation.items[place];
  return item?.kind === "call" ? item.call : null;
}

/** Copies the lists once for a batch of events, and each item at most once for each of its events. */
class Draft {
  private readonly items: Item[];
  private readonly places: Map<string, number>;
  private readonly waiting: Set<string>;
  private readonly running: Set<string>;
  private turn: Turn;
  private mode: string | null;
  private seq: number;
  private active: boolean;

  constructor(before: Conversation) {
    this.items = [...before.items];
    this.places = new Map(before.places);
    this.waiting = new Set(before.waiting);
    this.running = new Set(before.running);
    this.turn = before.turn;
    this.mode = before.mode;
    this.seq = before.seq;
    this.active = before.active;
  }

  finish(): Conversation {
    const order = (id: string) => this.places.get(id) ?? 0;
    const { items, places, turn, mode, seq, active } = this;
    const waiting = [...this.waiting].sort((a, b) => order(a) - order(b));
    return { items, places, waiting, running: [...this.running], turn, mode, seq, active };
  }

  add(event: AnyEvent): void {
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    this.dropPause();
    switch (event.kind) {
      case "user":
        if (!this.active) this.turn = { ...NEW_TURN, started: event.time };
        this.active = true;
        this.push({ kind: "user", key: `u${event.seq}`, seq: event.seq, time: event.time, text: event.text });
        return;
      case "text":
      case "reasoning":
        this.addPiece(event.kind, event);
        return;
      case "display":
        this.push({ kind: "display", key: `d${event.seq}`, seq: event.seq, display: event });
        return;
      case "warning":
        this.addNote(event.seq, "warning", event.code, event.text);
        return;
      case "notice":
        this.addNote(event.seq, "info", event.code ?? null, event.text);
        if (event.code === "INTERRUPTED") this.interruptCalls();
        return;
      case "mode":
        this.mode = event.mode;
        this.addNote(event.seq, "info", null, `The mode is ${event.mode} from here on.`);
        return;
      case "usage":
        this.addUsage(event);
        return;
      case "process":
        if (event.state === "started") this.running.add(event.process);
        else this.running.delete(event.process);
        this.push({ kind: "process", key: `p${event.seq}`, seq: event.seq, process: event });
        return;
      case "network":
        this.addNetwork(event);
        return;
      case "end":
        this.active = PAUSES.has(event.reason);
        this.push({ kind: "end", key: `e${event.seq}`, seq: event.seq, end: event, turn: this.turn });
        return;
      case "error":
        this.active = false;
        this.push({ kind: "error", key: `x${event.seq}`, seq: event.seq, error: event });
        return;
      default:
        this.addToolEvent(event);
    }
  }

  /** A turn that waited for a person goes on, so the line that said so is no end. */
  private dropPause(): void {
    const last = this.items.at(-1);
    if (last?.kind === "end" && PAUSES.has(last.end.reason)) this.items.pop();
  }

  private push(item: Item): void {
    this.items.push(item);
  }

  private addNote(seq: number, level: "info" | "warning", code: string | null, text: string): void {
    this.push({ kind: "note", key: `n${seq}`, seq, level, code, text });
  }

  /** Pieces of one message that follow each other are one item. */
  private addPiece(kind: "text" | "reasoning", event: { seq: number; messageId: string; text: string }): void {
    const place = this.items.length - 1;
    const last = this.items[place];
    if (last?.kind === kind && last.messageId === event.messageId) {
      this.items[place] = { ...last, text: last.text + event.text };
      return;
    }
    const { seq, messageId, text } = event;
    this.push({ kind, key: `t${seq}`, seq, messageId, text });
  }

  private addUsage(event: Usage): void {
    const inputTokens = this.turn.inputTokens + event.input_tokens;
    const outputTokens = this.turn.outputTokens + event.output_tokens;
    this.turn = { ...this.turn, inputTokens, outputTokens };
  }

  private addNetwork(event: Network): void {
    const id = event.tool_call_id;
    if (typeof id === "string" && this.places.has(id)) {
      this.change(id, (call) => ({ network: [...call.network, event] }));
    } else {
      this.push({ kind: "network", key: `w${event.seq}`, seq: event.seq, network: event });
    }
  }

  private addToolEvent(event: Extract<AnyEvent, { tool_call_name: string }>): void {
    const id = event.tool_call_id;
    if (!this.places.has(id)) this.start(event);
    switch (event.kind) {
      case "tool_call.start":
        this.turn = { ...this.turn, calls: this.turn.calls + 1 };
        this.change(id, () => ({ args: event.args, purpose: event.purpose ?? null }));
        return;
      case "tool_call.running":
        this.settle(id, "running");
        return;
      case "tool_call.update":
        this.change(id, (call) => ({
          ...appendOutput(call, event.output ?? ""),
          title: event.title ?? call.title,
          state: call.state === "queued" ? "running" : call.state,
        }));
        return;
      case "tool_call.permission-required":
        this.waiting.add(id);
        this.change(id, () => ({ request: event.permission_request, answer: null, state: "waiting" }));
        return;
      case "tool_call.permission-granted":
        this.waiting.delete(id);
        if ((event.answer.by ?? null) === null) this.turn = { ...this.turn, kept: this.turn.kept + 1 };
        this.change(id, () => ({ request: event.permission_request, answer: event.answer, state: "queued" }));
        return;
      case "tool_call.permission-denied":
        this.waiting.delete(id);
        this.turn = { ...this.turn, denied: this.turn.denied + 1 };
        this.change(id, () => ({ request: event.permission_request, answer: event.answer, state: "denied" }));
        return;
      case "tool_call.question-required": {
        const { question, options, multiple, custom } = event;
        this.waiting.add(id);
        this.change(id, () => ({ question: { toolCallId: id, question, options, multiple, custom }, state: "asking" }));
        return;
      }
      case "change":
        this.addChange(event.change);
        this.change(id, () => ({ change: event.change }));
        return;
      case "tool_call.end":
      case "tool_call.error":
        this.finishCall(id, event.result, event.time);
    }
  }

  private start(event: Extract<AnyEvent, { tool_call_name: string }>): void {
    const call = makeCall(event.tool_call_id, event.toolName ?? event.tool_call_name, event.serverName ?? null, event.time, event.seq);
    this.places.set(call.id, this.items.length);
    this.push({ kind: "call", key: `c${call.id}`, seq: event.seq, call });
  }

  private settle(id: string, state: CallState): void {
    this.waiting.delete(id);
    this.change(id, () => ({ state }));
  }

  private finishCall(id: string, result: ToolResult, time: string): void {
    this.waiting.delete(id);
    const code = result.error?.code ?? "";
    const state: CallState = result.ok ? "ok" : DENIALS.has(code) ? "denied" : "failed";
    this.change(id, () => ({ result, state, ended: time, title: result.title, output: "", dropped: 0 }));
  }

  private addChange(change: ChangeSet): void {
    const { turn } = this;
    this.turn = {
      ...turn,
      files: turn.files + change.changes.length,
      added: turn.added + sum(change.changes.map((one) => one.added ?? 0)),
      removed: turn.removed + sum(change.changes.map((one) => one.removed ?? 0)),
      changes: typeof change.number === "number" ? [...turn.changes, change.number] : turn.changes,
      notCovered: [...turn.notCovered, ...(change.notCovered ?? [])],
    };
  }

  private interruptCalls(): void {
    for (const [id, place] of this.places) {
      const item = this.items[place];
      if (item?.kind === "call" && item.call.state === "running") this.settle(id, "interrupted");
    }
  }

  private change(id: string, build: (call: Call) => Partial<Call>): void {
    const place = this.places.get(id);
    const item = place === undefined ? undefined : this.items[place];
    if (place === undefined || item?.kind !== "call") return;
    this.items[place] = { ...item, call: { ...item.call, ...build(item.call) } };
  }
}

const PAUSES = new Set<End["reason"]>(["parked", "question"]);
const DENIALS = new Set(["PERMISSION_DENIED", "POLICY_DENIED"]);

function appendOutput(call: Call, output: string): Pick<Call, "output" | "dropped"> {
  const joined = call.output + output;
  if (joined.length <= MAX_LIVE_OUTPUT) return { output: joined, dropped: call.dropped };
  const cut = joined.indexOf("\n", joined.length - KEPT_LIVE_OUTPUT) + 1 || joined.length - KEPT_LIVE_OUTPUT;
  return { output: joined.slice(cut), dropped: call.dropped + cut };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
