/** The items of a conversation. Only what is on the screen is in the page, so that thousands scroll smoothly. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Display } from "../../api/types";
import { Link, pathTo } from "../../router";
import { Counts } from "../../parts/diff";
import { colourOf, Sign, StateLabel } from "../../parts/signs";
import { MarkdownText, Visible } from "../../parts/text";
import type { Conversation, Item, ShownEvent } from "../../state/conversation";
import { useKeys } from "../../state/keys";
import { formatCount, formatDuration, formatPlural } from "../../text/format";
import { CallCard, Connection, isOpenAtFirst } from "./card";

const NEAR_END = 60;

interface Props {
  task: string;
  conversation: Conversation;
  /** The call that the address names. */
  selected: string | null;
}

export function ItemList({ task, conversation, selected }: Props) {
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
  const place = selected === null ? undefined : conversation.places.get(selected);
  useEffect(() => {
    if (place !== undefined) goTo(place);
  }, [place, goTo]);
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
                    open={toggled.get(item.key) ?? (item.kind === "call" && (item.call.id === selected || isOpenAtFirst(item.call)))}
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

/** j and k go through the cards, o opens or folds one. */
function useCardKeys(items: readonly Item[], box: RefObject<HTMLDivElement | null>, goTo: (place: number) => void): void {
  const cards = useMemo(() => items.flatMap((item, place) => (item.kind === "call" ? [place] : [])), [items]);
  const current = (): number => {
    const item = document.activeElement?.closest<HTMLElement>("[data-index]");
    return item !== null && item !== undefined && box.current?.contains(item) === true ? Number(item.dataset.index) : -1;
  };
  const move = (find: (now: number) => number | undefined) => () => {
    const place = find(current());
    if (place !== undefined) goTo(place);
  };
  useKeys({
    j: move((now) => cards.find((place) => place > now) ?? cards.at(-1)),
    k: move((now) => (now < 0 ? cards.at(-1) : (cards.findLast((place) => place < now) ?? cards[0]))),
    o: () => box.current?.querySelector<HTMLElement>(`[data-index="${current()}"] .card-head button`)?.click(),
  });
}

const NAMES = { text: "Model", reasoning: "Reasoning", end: "End of the turn" } as const;

function nameItem(item: Item): string {
  if (item.kind === "call") return `Call of ${item.call.name}`;
  if (item.kind === "event") return item.event.kind === "user" ? "You" : "Note";
  return NAMES[item.kind];
}

function estimateHeight(item: Item | undefined): number {
  if (item?.kind === "call") return isOpenAtFirst(item.call) ? 220 : 44;
  const text = item?.kind === "event" && item.event.kind === "user" ? item.event : item;
  return text !== undefined && "text" in text ? 28 + Math.ceil(text.text.length / 90) * 20 : 36;
}

interface ItemProps {
  task: string;
  item: Item;
  open: boolean;
  onToggle: (key: string, open: boolean) => void;
}

const ItemView = memo(function ItemView({ task, item, open, onToggle }: ItemProps) {
  switch (item.kind) {
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
        <CallCard task={task} call={item.call} open={open} onToggle={(next) => onToggle(item.key, next)} />
      );
    case "event":
      return <EventView event={item.event} />;
    case "end":
      return <EndLine item={item} />;
  }
});

function EventView({ event }: { event: ShownEvent }) {
  switch (event.kind) {
    case "user":
      return (
        <div className="message from-user">
          <span className="who">you</span>
          <div className="plain-text">{event.text}</div>
        </div>
      );
    case "display":
      return <DisplayView display={event} />;
    case "warning":
    case "notice":
      return (
        <p className={event.kind === "warning" ? "note warn" : "note"}>
          {event.kind === "warning" ? "! " : "· "}
          {event.code != null && <code>{event.code}</code>} <Visible text={event.text} />
        </p>
      );
    case "mode":
      return <p className="note">· The mode is {event.mode} from here on.</p>;
    case "network":
      return (
        <p className="note">
          {event.allowed && "· "}
          <Connection network={event} />
        </p>
      );
    case "process":
      return (
        <p className="note">
          ● process <Link to={pathTo("processes", event.process)}>{event.process}</Link> {event.state}:{" "}
          <Visible as="code" text={event.command} />
        </p>
      );
    case "error":
      return (
        <div className="failure">
          <Sign name="error" />
          <span>
            <Visible text={event.message} /> <code>{event.code}</code>
          </span>
        </div>
      );
  }
}

function DisplayView({ display: { title, content, level = "info", thought, evidence = [] } }: { display: Display }) {
  return (
    <div className={`display ${colourOf(level)}`}>
      <Sign name={level} />
      <div>
        {title != null && <strong>{title}</strong>}
        <MarkdownText text={content} />
        {thought != null && <p className="note">{thought}</p>}
        {evidence.length > 0 && (
          <Visible as="p" className="note" text={evidence.join(" · ")} />
        )}
      </div>
    </div>
  );
}

const ENDINGS = {
  done: ["done", "Done"],
  cancelled: ["cancelled", "Stopped"],
  limit: ["limit", "Stopped by a limit"],
  parked: ["waiting", "Waits for your approval"],
  question: ["waiting", "Waits for your reply"],
} as const;

function EndLine({ item }: { item: Extract<Item, { kind: "end" }> }) {
  const { end, turn } = item;
  const [name, words] = ENDINGS[end.reason];
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
      <StateLabel name={name}>{words}</StateLabel>
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
