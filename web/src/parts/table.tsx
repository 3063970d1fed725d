/** A list as a table. A row with an address opens it. */

import type { ReactNode } from "react";
import { Link, navigate } from "../router";

/** A title, and the classes of the column: `numeric`, `wide-only`, `title`. */
export type Column = readonly [title: string, classes?: string];

export interface TableRow {
  key: string | number;
  to?: string;
  current?: boolean;
  cells: readonly ReactNode[];
}

export function Table({ columns, rows, name = "" }: { columns: readonly Column[]; rows: readonly TableRow[]; name?: string }) {
  return (
    <table className={`rows ${name}`}>
      <thead><tr>{columns.map(([title, classes]) => <th key={title} scope="col" className={classes}>{title}</th>)}</tr></thead>
      <tbody>
        {rows.map(({ key, to, current, cells }) => (
          <tr key={key} aria-current={current === true ? "true" : undefined} onClick={to === undefined ? undefined : () => navigate(to)}>
            {cells.map((cell, place) => <td key={columns[place]?.[0]} className={columns[place]?.[1]}>{cell}</td>)}
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
