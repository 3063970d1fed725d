/** A diff as tables. Added and removed lines say so in text, not only in colour. */

import { useMemo, useState } from "react";
import { type FileDiff, parseDiff, type Row } from "../text/diff";
import { findLanguage } from "../text/languages";
import { Painted } from "./code";
import { Visible } from "./text";

const FIRST_ROWS = 300;
const OPEN_FILES = 12;

interface Props {
  text: string;
  /** Whether `text` is cut. */
  truncated?: boolean;
  /** Notes beside the name of a file: `layout only`. */
  notes?: ReadonlyMap<string, readonly string[]>;
}

export function DiffView({ text, truncated = false, notes }: Props) {
  const files = useMemo(() => parseDiff(text), [text]);
  return (
    <div className="diff">
      {files.map((file, place) => (
        <FileView key={place} file={file} notes={notes?.get(file.path) ?? []} open={place < OPEN_FILES} />
      ))}
      {truncated && <p className="note">The diff is longer. Only its beginning is shown.</p>}
    </div>
  );
}

function FileView({ file, notes, open }: { file: FileDiff; notes: readonly string[]; open: boolean }) {
  const [isOpen, setOpen] = useState(open);
  return (
    <details className="diff-file" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span className="path">
          {file.from !== null && (
            <>
              <Visible text={file.from} /> →{" "}
            </>
          )}
          <Visible text={file.path} />
        </span>
        <Counts added={file.added} removed={file.removed} />
        {notes.map((note) => (
          <span key={note} className="tag">
            {note}
          </span>
        ))}
      </summary>
      {isOpen && <FileBody file={file} />}
    </details>
  );
}

function FileBody({ file }: { file: FileDiff }) {
  const [shown, setShown] = useState(FIRST_ROWS);
  const language = findLanguage(file.path);
  const total = file.hunks.reduce((sum, hunk) => sum + hunk.rows.length, 0);
  const starts = file.hunks.map((_, place) => file.hunks.slice(0, place).reduce((sum, one) => sum + one.rows.length, 0));
  return (
    <>
      {file.notes.length > 0 && <pre className="diff-notes">{file.notes.join("\n")}</pre>}
      {file.hunks.length > 0 && (
        // A region that scrolls has to be reached by the keyboard.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <div className="scroll-x" role="region" aria-label={`Changes of ${file.path}`} tabIndex={0}>
          <table className="diff-table">
            <thead className="only-read">
              <tr>
                <th scope="col">Line before</th>
                <th scope="col">Line after</th>
                <th scope="col">Change</th>
                <th scope="col">Text</th>
              </tr>
            </thead>
            {file.hunks.map((hunk, place) => {
              const rows = hunk.rows.slice(0, Math.max(0, shown - (starts[place] ?? 0)));
              return (
                rows.length > 0 && (
                  <tbody key={place}>
                    {place > 0 && (
                      <tr className="hunk">
                        <td colSpan={4}>{hunk.header}</td>
                      </tr>
                    )}
                    {rows.map((row, n) => (
                      <RowView key={n} row={row} language={language} />
                    ))}
                  </tbody>
                )
              );
            })}
          </table>
        </div>
      )}
      {total > shown && (
        <button type="button" className="quiet" onClick={() => setShown((before) => before + 2000)}>
          Show more of {total.toLocaleString("en")} lines
        </button>
      )}
    </>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−", note: " " } as const;
const WORDS = { same: "", added: "added", removed: "removed", note: "" } as const;

function RowView({ row, language }: { row: Row; language: string | null }) {
  return (
    <tr className={row.kind}>
      <td className="number">{row.before ?? ""}</td>
      <td className="number">{row.after ?? ""}</td>
      <td className="sign">
        <span aria-hidden="true">{SIGNS[row.kind]}</span>
        <span className="only-read">{WORDS[row.kind]}</span>
      </td>
      <td className="line">
        <LineText row={row} language={language} />
      </td>
    </tr>
  );
}

function LineText({ row, language }: { row: Row; language: string | null }) {
  if (row.kind === "added" || row.kind === "removed") {
    if (row.marks !== null) {
      return row.marks.map((part, place) =>
        part.changed ? (
          <span key={place} className="changed">
            <Visible text={part.text} ends={place === (row.marks?.length ?? 0) - 1} />
          </span>
        ) : (
          <Visible key={place} text={part.text} ends={place === (row.marks?.length ?? 0) - 1} />
        ),
      );
    }
    return <Visible text={row.text} />;
  }
  return <Painted text={row.text} language={language} />;
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="counts">
      {added > 0 && <span className="plus">+{added}</span>} {removed > 0 && <span className="minus">−{removed}</span>}
    </span>
  );
}
