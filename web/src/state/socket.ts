/** The live events of one task: a WebSocket that resumes after the last event, without loss. */

import { useEffect, useMemo, useSyncExternalStore } from "react";
import type { AnyEvent, ServerFrame, Task } from "../api/types";
import { addEvents, type Conversation, EMPTY } from "./conversation";

/** `connecting`: for the first time. `broken`: it was open and comes back. `closed`: it does not come back. */
export type Link = "connecting" | "open" | "broken" | "closed";

export interface TaskView {
  task: Task | null;
  conversation: Conversation;
  link: Link;
  /** Whether all stored events are here. */
  caughtUp: boolean;
  /** Output of previews that run, by call. */
  previews: ReadonlyMap<string, string>;
  /** Why it is closed. */
  problem: string | null;
}

const FIRST_DELAY_MS = 300;
const LONGEST_DELAY_MS = 10_000;
const PROBLEMS: Readonly<Record<number, string>> = {
  4401: "You are signed out.",
  4403: "You may not watch this task.",
  4404: "There is no such task.",
};

export class TaskFeed {
  private view: TaskView = {
    task: null,
    conversation: EMPTY,
    link: "connecting",
    caughtUp: false,
    previews: new Map(),
    problem: null,
  };
  private readonly listeners = new Set<() => void>();
  private readonly events: AnyEvent[] = [];
  private socket: WebSocket | null = null;
  private timer: number | undefined;
  private frame: number | undefined;
  private failures = 0;
  private stopped = false;

  constructor(private readonly id: string) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly getView = (): TaskView => this.view;

  start(): void {
    this.stopped = false;
    window.addEventListener("online", this.hurry);
    this.connect();
  }

  stop(): void {
    this.stopped = true;
    window.removeEventListener("online", this.hurry);
    window.clearTimeout(this.timer);
    window.clearTimeout(this.frame);
    this.frame = undefined;
    this.socket?.close();
    this.socket = null;
  }

  /** Show a task that a request brought. */
  setTask(task: Task): void {
    this.update({ task });
  }

  private readonly hurry = (): void => {
    if (this.socket === null && !this.stopped) {
      window.clearTimeout(this.timer);
      this.connect();
    }
  };

  private connect(): void {
    const scheme = window.location.protocol === "https:" ? "wss" : "ws";
    const after = this.events.at(-1)?.seq ?? this.view.conversation.seq;
    const address = `${scheme}://${window.location.host}/ws/${encodeURIComponent(this.id)}?after=${after}&events=canonical`;
    const socket = new WebSocket(address);
    this.socket = socket;
    socket.onmessage = (message) => {
      if (this.socket === socket) this.receive(JSON.parse(String(message.data)) as ServerFrame);
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.lose(event.code);
    };
  }

  private lose(code: number): void {
    this.socket = null;
    if (this.stopped) return;
    const problem = PROBLEMS[code];
    if (problem !== undefined) {
      this.update({ link: "closed", problem });
      return;
    }
    this.failures += 1;
    this.update({ link: this.view.link === "connecting" && this.failures < 2 ? "connecting" : "broken" });
    this.timer = window.setTimeout(() => this.connect(), getDelay(this.failures, Math.random()));
  }

  private receive(frame: ServerFrame): void {
    this.failures = 0;
    switch (frame.type) {
      case "event":
        this.events.push(frame.event);
        this.endPreviews(frame.event);
        break;
      case "preview":
        this.changePreview(frame.toolCallId, frame.output);
        break;
      case "caught_up":
        this.flush({ caughtUp: true, link: "open" });
        return;
      case "task":
        this.flush({ task: frame.task });
        return;
      case "error":
        this.flush({ problem: frame.message });
        return;
      case "done":
        return;
    }
    this.frame ??= window.setTimeout(() => this.flush({}), this.view.caughtUp ? 16 : 120);
  }

  /** More output of the preview of a call. Empty: it begins. Null: it has ended. */
  private changePreview(id: string, output: string | null): void {
    const previews = new Map(this.view.previews);
    if (output === null) previews.delete(id);
    else previews.set(id, output === "" ? "" : ((previews.get(id) ?? "") + output).slice(-100_000));
    this.view = { ...this.view, previews };
  }

  /** The preview of a call ends with the next event of the call, and every preview with the turn. */
  private endPreviews(event: AnyEvent): void {
    const isLast = event.kind === "end" || event.kind === "error";
    const id = "tool_call_id" in event && event.kind !== "tool_call.start" ? event.tool_call_id : null;
    for (const one of this.view.previews.keys()) if (isLast || one === id) this.changePreview(one, null);
  }

  /** Events are shown together, at most once for each frame of the screen. */
  private flush(change: Partial<TaskView>): void {
    window.clearTimeout(this.frame);
    this.frame = undefined;
    const conversation = addEvents(this.view.conversation, this.events.splice(0));
    this.update({ ...change, conversation });
  }

  private update(change: Partial<TaskView>): void {
    this.view = { ...this.view, ...change };
    for (const listener of this.listeners) listener();
  }
}

/** How long to wait before the next attempt: twice as long each time, and not all clients at once. */
export function getDelay(failures: number, chance: number): number {
  const longest = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
  return longest * (0.5 + chance / 2);
}

/** One feed for each id while the component is there. */
export function useTaskFeed(id: string): { feed: TaskFeed; view: TaskView } {
  const feed = useMemo(() => new TaskFeed(id), [id]);
  useEffect(() => {
    feed.start();
    return () => feed.stop();
  }, [feed]);
  return { feed, view: useSyncExternalStore(feed.subscribe, feed.getView) };
}
