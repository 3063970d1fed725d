/** Output of a command: ANSI colours are kept, other escapes are removed, long output folds with a search. */

import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, memo, useMemo, useRef, useState } from "react";
import { parseAnsi, type Span } from "../text/ansi";
import { isString } from "../text/json";
import { SearchField } from "./fields";

type Line = readonly Span[];

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
  const isLong = lines.length > FOLD_LINES;
  if (isLong && open) return <LongOutput lines={lines} onClose={() => setOpen(false)} />;
  return (
    <>
      {dropped > 0 && <p className="note">{dropped.toLocaleString("en")} characters before this are in the raw output.</p>}
      {isLong && (
        <button type="button" className="fold" onClick={() => setOpen(true)}>
          Show all {lines.length.toLocaleString("en")} lines
        </button>
      )}
      <LineBlock lines={isLong || live ? lines.slice(-FOLDED_LINES) : lines} />
    </>
  );
});

function LineBlock({ lines }: { lines: readonly Line[] }) {
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

function LongOutput({ lines, onClose }: { lines: readonly Line[]; onClose: () => void }) {
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
        <SearchField
          label="Search in the output"
          placeholder="Search in the output"
          value={search}
          onChange={(text) => {
            setSearch(text);
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

function findLines(lines: readonly Line[], search: string): readonly number[] {
  const wanted = search.toLowerCase();
  const has = (line: Line) => line.map((span) => span.text).join("").toLowerCase().includes(wanted);
  return search === "" ? [] : lines.flatMap((line, place) => (has(line) ? [place] : []));
}

function LineSpans({ spans }: { spans: Line }) {
  return spans.map((span, place) => (
    <span key={place} className={listClasses(span)} style={styleOf(span)}>
      {span.text}
    </span>
  ));
}

function listClasses({ colour, background, ...flags }: Span): string {
  const set = (["bold", "dim", "italic", "underline"] as const).filter((name) => flags[name]);
  const colours = [typeof colour === "number" ? `ansi-${colour}` : "", typeof background === "number" ? `ansi-back-${background}` : ""];
  return [...colours, ...set.map((name) => `ansi-${name}`)].join(" ");
}

/** Colours as numbers only, so that no output can bring other styles. */
function styleOf({ colour, background }: Span): CSSProperties {
  return { color: isString(colour) ? colour : undefined, backgroundColor: isString(background) ? background : undefined };
}
