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
  const rows = file.hunks.flatMap((hunk, place): readonly (Row | string)[] => (place === 0 ? hunk.rows : [hunk.header, ...hunk.rows]));
  return (
    <>
      {file.notes.length > 0 && <pre className="diff-notes">{file.notes.join("\n")}</pre>}
      {rows.length > 0 && (
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
            <tbody>
              {rows.slice(0, shown).map((row, place) => (
                <RowView key={place} row={row} language={language} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rows.length > shown && (
        <button type="button" className="quiet" onClick={() => setShown((before) => before + 2000)}>
          Show more of {rows.length.toLocaleString("en")} lines
        </button>
      )}
    </>
  );
}

const SIGNS = { same: [" ", ""], added: ["+", "added"], removed: ["−", "removed"], note: [" ", ""] } as const;

/** A line, or the header of a hunk. */
function RowView({ row, language }: { row: Row | string; language: string | null }) {
  if (typeof row === "string") {
    return (
      <tr className="hunk">
        <td colSpan={4}>{row}</td>
      </tr>
    );
  }
  const [sign, word] = SIGNS[row.kind];
  return (
    <tr className={row.kind}>
      <td className="number">{row.before ?? ""}</td>
      <td className="number">{row.after ?? ""}</td>
      <td className="sign">
        <span aria-hidden="true">{sign}</span>
        <span className="only-read">{word}</span>
      </td>
      <td className="line">
        {word === "" ? <Painted text={row.text} language={language} /> : <ChangedText row={row} />}
      </td>
    </tr>
  );
}

function ChangedText({ row: { text, marks } }: { row: Row }) {
  const parts = marks ?? [{ text, changed: false }];
  return parts.map((part, place) => (
    <span key={place} className={part.changed ? "changed" : undefined}>
      <Visible text={part.text} ends={place === parts.length - 1} />
    </span>
  ));
}

export function Counts({ added, removed }: { added: number; removed: number }) {
  return (
    <span className="counts">
      {added > 0 && <span className="plus">+{added}</span>} {removed > 0 && <span className="minus">−{removed}</span>}
    </span>
  );
}
