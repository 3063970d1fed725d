/** Output of a command: ANSI colours are kept, other escapes are removed, long output folds with a search. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, memo, useMemo, useRef, useState } from "react";
import { parseAnsi, type Span } from "../text/ansi";

const FOLD_LINES = 200;
const FOLDED_LINES = 20;
const LINE_HEIGHT = 18;

interface Props {
  text: string;
  /** While a command runs, the end is shown. */
  live?: boolean;
  /** How many characters before `text` are not kept. */
  dropped?: number;
}

export const Output = memo(function Output({ text, live = false, dropped = 0 }: Props) {
  const [open, setOpen] = useState(false);
  const lines = useMemo(() => parseAnsi(text.replace(/\n$/, "")).lines, [text]);
  if (text === "") return null;
  if (lines.length <= FOLD_LINES) {
    return (
      <>
        {dropped > 0 && <Dropped count={dropped} />}
        <LineBlock lines={live ? lines.slice(-FOLDED_LINES) : lines} />
      </>
    );
  }
  if (open) return <LongOutput lines={lines} onClose={() => setOpen(false)} />;
  return (
    <>
      {dropped > 0 && <Dropped count={dropped} />}
      <button type="button" className="fold" onClick={() => setOpen(true)}>
        Show all {lines.length.toLocaleString("en")} lines
      </button>
      <LineBlock lines={lines.slice(-FOLDED_LINES)} />
    </>
  );
});

function Dropped({ count }: { count: number }) {
  return <p className="note">{count.toLocaleString("en")} characters before this are in the raw output.</p>;
}

function LineBlock({ lines }: { lines: readonly (readonly Span[])[] }) {
  return (
    // A region that scrolls has to be reached by the keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className="output" tabIndex={0}>
      {lines.map((line, place) => (
        <div key={place}>
          <LineSpans spans={line} />
        </div>
      ))}
    </pre>
  );
}

function LongOutput({ lines, onClose }: { lines: readonly (readonly Span[])[]; onClose: () => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState("");
  const [current, setCurrent] = useState(0);
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 20,
  });
  const matches = useMemo(() => findLines(lines, search), [lines, search]);
  const go = (step: number) => {
    if (matches.length === 0) return;
    const next = (current + step + matches.length) % matches.length;
    setCurrent(next);
    rows.scrollToIndex(matches[next] ?? 0, { align: "center" });
  };
  return (
    <div className="long-output">
      <div className="output-search" role="search">
        <input
          type="search"
          aria-label="Search in the output"
          placeholder="Search in the output"
          value={search}
          onChange={(event) => {
            setSearch(event.target.value);
            setCurrent(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") go(event.shiftKey ? -1 : search === "" ? 0 : 1);
          }}
        />
        <span role="status">
          {search === "" ? `${lines.length.toLocaleString("en")} lines` : `${matches.length} found`}
        </span>
        <button type="button" onClick={() => go(-1)} disabled={matches.length === 0}>
          Previous
        </button>
        <button type="button" onClick={() => go(1)} disabled={matches.length === 0}>
          Next
        </button>
        <button type="button" onClick={onClose}>
          Fold
        </button>
      </div>
      {/* A region that scrolls has to be reached by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div ref={box} className="output long" tabIndex={0} role="region" aria-label="Output">
        <div className="virtual" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => (
            <div
              key={row.key}
              className={matches[current] === row.index ? "virtual-line found" : "virtual-line"}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <LineSpans spans={lines[row.index] ?? []} />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

function findLines(lines: readonly (readonly Span[])[], search: string): readonly number[] {
  if (search === "") return [];
  const wanted = search.toLowerCase();
  const found: number[] = [];
  lines.forEach((line, place) => {
    const text = line.map((span) => span.text).join("");
    if (text.toLowerCase().includes(wanted)) found.push(place);
  });
  return found;
}

function LineSpans({ spans }: { spans: readonly Span[] }) {
  if (spans.length === 0) return null;
  return spans.map((span, place) => {
    const names = classesOf(span);
    const style = styleOf(span);
    return names === "" && style === undefined ? (
      span.text
    ) : (
      <span key={place} className={names} style={style}>
        {span.text}
      </span>
    );
  });
}

function classesOf(span: Span): string {
  const names: string[] = [];
  if (typeof span.colour === "number") names.push(`ansi-${span.colour}`);
  if (typeof span.background === "number") names.push(`ansi-back-${span.background}`);
  for (const name of ["bold", "dim", "italic", "underline"] as const) if (span[name]) names.push(`ansi-${name}`);
  return names.join(" ");
}

/** Colours as numbers only, so that no output can bring other styles. */
function styleOf(span: Span): CSSProperties | undefined {
  const style: CSSProperties = {};
  if (typeof span.colour === "string") style.color = span.colour;
  if (typeof span.background === "string") style.backgroundColor = span.background;
  return Object.keys(style).length > 0 ? style : undefined;
}
