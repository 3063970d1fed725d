/** The items of a conversation. Only what is on the screen is in the page, so that thousands scroll smoothly. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Link } from "../../router";
import { Counts } from "../../parts/diff";
import { MarkdownText, Visible } from "../../parts/text";
import type { Conversation, Item } from "../../state/conversation";
import { useKeys } from "../../state/keys";
import { formatCount, formatDuration, formatPlural } from "../../text/format";
import { CallCard, isOpenAtFirst } from "./card";

const NEAR_END = 60;

interface Props {
  task: string;
  conversation: Conversation;
  /** The call that the address names. */
  selected: string | null;
  /** Requests that were answered in this window. */
  answered: ReadonlySet<string>;
}

export function ItemList({ task, conversation, selected, answered }: Props) {
  const { items } = conversation;
  const box = useRef<HTMLDivElement>(null);
  const following = useRef(selected === null);
  const [away, setAway] = useState(false);
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: (place) => estimateHeight(items[place]),
    getItemKey: (place) => items[place]?.key ?? place,
    overscan: 6,
    paddingStart: 12,
    paddingEnd: 12,
  });
  const height = rows.getTotalSize();

  useLayoutEffect(() => {
    const element = box.current;
    if (element !== null && following.current) element.scrollTop = element.scrollHeight;
  }, [height, items]);
  const lastTop = useRef(0);
  const scrolled = useCallback(() => {
    const element = box.current;
    if (element === null) return;
    const near = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END;
    // Only going up ends following: the list also moves when it grows, or when something is docked below it.
    if (near) following.current = true;
    else if (element.scrollTop < lastTop.current - 1) following.current = false;
    lastTop.current = element.scrollTop;
    setAway(!near && !following.current);
  }, []);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      if (following.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const goTo = useCallback(
    (place: number) => {
      following.current = false;
      rows.scrollToIndex(place, { align: "auto" });
      window.requestAnimationFrame(() => focusItem(box, place));
    },
    [rows],
  );
  useSelection(selected, conversation, goTo, setToggled);
  useCardKeys(items, box, goTo);

  const toggle = useCallback((key: string, open: boolean) => {
    setToggled((before) => new Map(before).set(key, open));
  }, []);
  return (
    <div className="items-frame">
      {/* A region that scrolls has to be reached by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div ref={box} className="items" onScroll={scrolled} tabIndex={0} role="feed" aria-label="Conversation">
        <div className="virtual" style={{ height }} role="presentation">
          {rows.getVirtualItems().map((row) => {
            const item = items[row.index];
            return (
              item !== undefined && (
                <article
                  key={row.key}
                  ref={rows.measureElement}
                  data-index={row.index}
                  className="item"
                  tabIndex={-1}
                  aria-posinset={row.index + 1}
                  aria-setsize={items.length}
                  aria-label={nameItem(item)}
                  style={{ transform: `translateY(${row.start}px)` }}
                >
                  <ItemView
                    task={task}
                    item={item}
                    open={toggled.get(item.key) ?? (item.kind === "call" && isOpenAtFirst(item.call))}
                    mine={item.kind === "call" && item.call.request !== null && answered.has(item.call.request.id)}
                    onToggle={toggle}
                  />
                </article>
              )
            );
          })}
        </div>
      </div>
      {away && (
        <button
          type="button"
          className="to-end"
          onClick={() => {
            following.current = true;
            setAway(false);
            rows.scrollToIndex(items.length - 1, { align: "end" });
          }}
        >
          ↓ To the end
        </button>
      )}
    </div>
  );
}

function focusItem(box: RefObject<HTMLDivElement | null>, place: number): void {
  box.current?.querySelector<HTMLElement>(`[data-index="${place}"]`)?.focus({ preventScroll: true });
}

/** Opens the call that the address names, once it is here. */
function useSelection(
  selected: string | null,
  conversation: Conversation,
  goTo: (place: number) => void,
  setToggled: (change: (before: ReadonlyMap<string, boolean>) => ReadonlyMap<string, boolean>) => void,
): void {
  const done = useRef<string | null>(null);
  const place = selected === null ? undefined : conversation.places.get(selected);
  useEffect(() => {
    if (place === undefined || selected === null || done.current === selected) return;
    done.current = selected;
    setToggled((before) => new Map(before).set(`c${selected}`, true));
    goTo(place);
  }, [place, selected, goTo, setToggled]);
}

/** j and k go through the cards, o opens or folds one. */
function useCardKeys(items: readonly Item[], box: RefObject<HTMLDivElement | null>, goTo: (place: number) => void): void {
  const cards = useMemo(() => items.flatMap((item, place) => (item.kind === "call" ? [place] : [])), [items]);
  const current = (): number => {
    const item = document.activeElement?.closest<HTMLElement>("[data-index]");
    return item !== null && item !== undefined && box.current?.contains(item) === true ? Number(item.dataset.index) : -1;
  };
  useKeys({
    j: () => {
      const next = cards.find((place) => place > current()) ?? cards.at(-1);
      if (next !== undefined) goTo(next);
    },
    k: () => {
      const now = current();
      const before = now < 0 ? cards.at(-1) : (cards.findLast((place) => place < now) ?? cards[0]);
      if (before !== undefined) goTo(before);
    },
    o: () => {
      const now = current();
      if (now >= 0) box.current?.querySelector<HTMLElement>(`[data-index="${now}"] .card-head button`)?.click();
    },
  });
}

function nameItem(item: Item): string {
  switch (item.kind) {
    case "user":
      return "You";
    case "text":
      return "Model";
    case "reasoning":
      return "Reasoning";
    case "call":
      return `Call of ${item.call.name}`;
    case "end":
      return "End of the turn";
    default:
      return "Note";
  }
}

function estimateHeight(item: Item | undefined): number {
  if (item === undefined) return 40;
  switch (item.kind) {
    case "text":
    case "user":
    case "reasoning":
      return 28 + Math.ceil(item.text.length / 90) * 20;
    case "call":
      return isOpenAtFirst(item.call) ? 220 : 44;
    default:
      return 36;
  }
}

interface ItemProps {
  task: string;
  item: Item;
  open: boolean;
  mine: boolean;
  onToggle: (key: string, open: boolean) => void;
}

const ItemView = memo(function ItemView({ task, item, open, mine, onToggle }: ItemProps) {
  switch (item.kind) {
    case "user":
      return (
        <div className="message from-user">
          <span className="who">you</span>
          <div className="plain-text">{item.text}</div>
        </div>
      );
    case "text":
      return (
        <div className="message">
          <MarkdownText text={item.text} />
        </div>
      );
    case "reasoning":
      return (
        <details className="reasoning" open={open} onToggle={(event) => onToggle(item.key, event.currentTarget.open)}>
          <summary>Reasoning</summary>
          <div className="plain-text">{item.text}</div>
        </details>
      );
    case "call":
      return (
        <CallCard task={task} call={item.call} open={open} mine={mine} onToggle={(next) => onToggle(item.key, next)} />
      );
    default:
      return <SmallItem item={item} />;
  }
});

const LEVELS = {
  info: ["·", "muted"],
  success: ["✓", "ok"],
  warning: ["!", "warn"],
  error: ["✗", "bad"],
  progress: ["●", "muted"],
} as const;

function SmallItem({ item }: { item: Exclude<Item, { kind: "user" | "text" | "reasoning" | "call" }> }) {
  switch (item.kind) {
    case "display": {
      const { title, content, level = "info", thought, evidence = [] } = item.display;
      const [sign, colour] = LEVELS[level];
      return (
        <div className={`display ${colour}`}>
          <span aria-hidden="true">{sign}</span>
          <div>
            {title !== null && title !== undefined && <strong>{title}</strong>}
            <MarkdownText text={content} />
            {thought !== null && thought !== undefined && <p className="note">{thought}</p>}
            {evidence.length > 0 && (
              <p className="note">
                <Visible text={evidence.join(" · ")} />
              </p>
            )}
          </div>
        </div>
      );
    }
    case "note":
      return (
        <p className={item.level === "warning" ? "note warn" : "note"}>
          {item.level === "warning" ? "! " : "· "}
          {item.code !== null && <code>{item.code}</code>} <Visible text={item.text} />
        </p>
      );
    case "network": {
      const { host, port, allowed, reason } = item.network;
      return (
        <p className="note">
          {allowed ? "· connected to " : "! blocked: "}
          <Visible text={`${host}:${port}`} /> ({reason})
        </p>
      );
    }
    case "process": {
      const { process, state, command } = item.process;
      return (
        <p className="note">
          ● process <Link to={`/processes/${encodeURIComponent(process)}`}>{process}</Link> {state}:{" "}
          <code>
            <Visible text={command} />
          </code>
        </p>
      );
    }
    case "error":
      return (
        <div className="failure">
          <span aria-hidden="true">✗</span>
          <span>
            <Visible text={item.error.message} /> <code>{item.error.code}</code>
          </span>
        </div>
      );
    case "end":
      return <EndLine item={item} />;
  }
}

const ENDINGS = {
  done: ["✓ Done", "ok"],
  cancelled: ["⊘ Stopped", "muted"],
  limit: ["✗ Stopped by a limit", "bad"],
  parked: ["! Waits for your approval", "warn"],
  question: ["! Waits for your reply", "warn"],
} as const;

function EndLine({ item }: { item: Extract<Item, { kind: "end" }> }) {
  const { end, turn } = item;
  const [words, colour] = ENDINGS[end.reason];
  const files = (end.files_changed ?? []).length || turn.files;
  const facts = [
    turn.started === null ? null : formatDuration(Date.parse(end.time) - Date.parse(turn.started)),
    formatPlural(turn.calls, "call"),
    turn.kept > 0 ? `${turn.kept} approved` : null,
    turn.denied > 0 ? `${turn.denied} denied` : null,
    turn.inputTokens > 0 ? `${formatCount(turn.inputTokens)}→${formatCount(turn.outputTokens)} tokens` : null,
  ];
  return (
    <div className="end-line">
      <span className={colour}>{words}</span>
      {facts.map((fact) => fact !== null && <span key={fact}> · {fact}</span>)}
      {files > 0 && (
        <span>
          {" "}
          · {formatPlural(files, "file")} changed <Counts added={turn.added} removed={turn.removed} />
        </span>
      )}
      {turn.notCovered.length > 0 && <p className="note warn">Not covered by undo: {turn.notCovered.join("; ")}</p>}
    </div>
  );
}
