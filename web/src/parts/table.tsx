/** A list as a table. A row with an address opens it. */

import type { ReactNode } from "react";
import { Link, navigate } from "../router";

/** A title, the classes of the column (`numeric`, `wide-only`, `title`), and its cell in a row. */
export type Column<T> = readonly [title: string, classes: string, cell: (row: T) => ReactNode];

interface Props<T> {
  columns: readonly Column<T>[];
  rows: readonly T[];
  id: (row: T) => string | number;
  /** The address of a row, if it opens. */
  to?: (row: T) => string;
  /** The id of the open row. */
  current?: string | number | null | undefined;
  name?: string;
}

export function Table<T>({ columns, rows, id, to, current, name = "" }: Props<T>) {
  return (
    <table className={`rows ${name}`}>
      <thead><tr>{columns.map(([title, classes]) => <th key={title} scope="col" className={classes}>{title}</th>)}</tr></thead>
      <tbody>
        {rows.map((row) => (
          <tr key={id(row)} aria-current={id(row) === current ? "true" : undefined} onClick={to && (() => navigate(to(row)))}>
            {columns.map(([title, classes, cell]) => <td key={title} className={classes}>{cell(row)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The link of a row, which the keyboard uses. */
export function RowLink({ to, children, classes = "" }: { to: string; children: ReactNode; classes?: string }) {
  return <Link to={to} className={`row-link ${classes}`} onClick={(event) => event.stopPropagation()}>{children}</Link>;
}
