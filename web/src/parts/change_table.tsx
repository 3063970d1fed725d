/** Changed files, each with its remarks. */

import type { Change } from "../api/types";
import { countLines } from "../text/diff";
import { letterOf, listRemarks } from "../text/permission";
import { Counts } from "./diff";
import { Visible } from "./text";
import "./permission/permission.css";

export function ChangeTable({ changes }: { changes: readonly Change[] }) {
  return (
    <table className="change-table">
      <tbody>
        {changes.map((change) => {
          const [letter, verb] = letterOf(change);
          return (
            <tr key={change.path}>
              <td className={change.action === "deleted" ? "bad" : undefined}>
                <span aria-hidden="true">{letter}</span>
                <span className="only-read">{verb}</span>
              </td>
              <th scope="row" className="path">
                {change.renamedFrom != null && (
                  <>
                    <Visible text={change.renamedFrom} /> →{" "}
                  </>
                )}
                <Visible text={change.kind === "folder" ? `${change.path}/` : change.path} />
              </th>
              <td>
                <Counts {...countLines([change])} />
              </td>
              <td>
                {listRemarks(change).map((remark) => (
                  <span key={remark.text} className={remark.harm ? "tag bad" : "tag"}>
                    <Visible text={remark.text} />
                  </span>
                ))}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
