/** The list of keys. */

import { PAGES } from "../pages";
import { Dialog } from "./dialog";

const KEYS: readonly (readonly [string, string])[] = [
  ["ctrl+k", "Tools: find one and try it"],
  ["n", "Tasks: new task"],
  ["/", "Filter the list"],
  ["j k", "Next and previous card or row, change of a replay; also ↓ ↑"],
  ["o", "Open or fold the card, open the row"],
  [".", "Go to the request that waits"],
  ["← →", "In a replay: previous and next change"],
  ["[ ]", "Previous and next file of a diff"],
  ["ctrl+enter", "Send the message"],
  ["y s w", "In a permission: keep, also for the session, also for the workspace"],
  ["n o e", "In a permission: drop with a reason, output only, edit the command"],
  ["r", "In a permission: try again"],
  ["Escape", "Close a dialog"],
  ["?", "This list"],
];

export function KeyHelp({ onClose }: { onClose: () => void }) {
  const pages = PAGES.map((page) => [`g ${page.key}`, `Go to ${page.title}`] as const);
  return (
    <Dialog title="Keys" onClose={onClose}>
      <table className="keys">
        <tbody>
          {[...pages, ...KEYS].map(([keys, text]) => (
            <tr key={text}>
              <th scope="row">
                {keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </th>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="muted">Keys of a permission act only with the focus inside it.</p>
    </Dialog>
  );
}
