/** What an answer needs besides a click: a reason, the grants, another command. */

import { type ReactNode, useState } from "react";
import type { NewAnswer, PermissionRequest } from "../../api/types";
import { CheckBox, CodeArea, Form, Labelled, TextArea } from "../fields";
import { listFolders } from "../../text/permission";
import { Visible } from "../text";

interface PanelProps {
  title: string;
  /** The word on the button that sends it. */
  verb: string;
  danger?: boolean;
  ready: boolean;
  note?: string;
  onSend: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A small form inside the drawer. */
function Panel({ title, verb, danger = false, ready, note, onSend, onClose, children }: PanelProps) {
  return (
    <Form className="drawer-form" label={title} ready={ready} onSend={onSend} onClose={onClose}>
      {children}
      <div className="row">
        <button type="submit" className={danger ? "danger" : "primary"} disabled={!ready}>
          {verb}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        {note !== undefined && <span className="note">{note}</span>}
      </div>
    </Form>
  );
}

/** The focus goes to a field that the person asked for. */
const takeFocus = (field: HTMLElement | null) => field?.focus();

interface ReasonProps {
  verb: "Drop" | "Reject";
  off: boolean;
  onSend: (reason: string | null) => void;
  onClose: () => void;
}

export function ReasonForm({ verb, off, onSend, onClose }: ReasonProps) {
  const [text, setText] = useState("");
  const reason = text.trim() === "" ? null : text.trim();
  const title = `${verb} with a reason`;
  return (
    <Panel title={title} verb={reason === null ? `${verb} without a reason` : verb} danger ready={!off} onSend={() => onSend(reason)} onClose={onClose}>
      <Labelled label="Why? The model reads it.">
        <TextArea ref={takeFocus} rows={2} value={text} onChange={setText} />
      </Labelled>
    </Panel>
  );
}

interface GrantProps {
  request: PermissionRequest;
  scope: "session" | "workspace";
  verb: "Keep" | "Approve";
  off: boolean;
  onSend: (answer: Omit<NewAnswer, "revision">) => void;
  onClose: () => void;
}

const KINDS = {
  session: "in this session",
  workspace: "in this workspace",
  edits: "for plain edits in this session",
} as const;

/** Says exactly what is allowed from now on. Single grants can be left out. */
export function GrantChooser({ request, scope, verb, off, onSend, onClose }: GrantProps) {
  const offered = request.grants ?? [];
  const kinds = (["session", "workspace", "edits"] as const).filter((kind) => request.answers.includes(kind));
  const [kind, setKind] = useState(kinds.includes(scope) ? scope : kinds[0]);
  const [chosen, setChosen] = useState<readonly string[]>(offered);
  const isFolder = request.kind === "external_directory";
  const needsGrant = kind !== "edits" && !isFolder && offered.length > 0;
  const ready = !off && kind !== undefined && (!needsGrant || chosen.length > 0);
  const send = () => {
    if (kind !== undefined) onSend(needsGrant ? { kind, grants: chosen } : { kind });
  };
  return (
    <Panel title={`${verb} and allow`} verb={`${verb} and allow`} ready={ready} onSend={send} onClose={onClose}>
      <fieldset className="row">
        <legend>Stop asking</legend>
        {kinds.map((one) => (
          <label key={one} className="row">
            <input type="radio" name="scope" checked={kind === one} onChange={() => setKind(one)} />
            {KINDS[one]}
          </label>
        ))}
      </fieldset>
      {isFolder && (
        <p>
          Opens <Visible text={listFolders(request).join(", ")} />
        </p>
      )}
      {needsGrant && (
        <fieldset className="row">
          <legend>for</legend>
          {offered.map((grant) => (
            <CheckBox
              key={grant}
              label={<code><Visible text={grant} /></code>}
              checked={chosen.includes(grant)}
              onChange={(checked) => setChosen(offered.filter((one) => (one === grant ? checked : chosen.includes(one))))}
            />
          ))}
        </fieldset>
      )}
    </Panel>
  );
}

interface EditorProps {
  command: string;
  off: boolean;
  onSend: (command: string) => void;
  onClose: () => void;
}

export function CommandEditor({ command, off, onSend, onClose }: EditorProps) {
  const [text, setText] = useState(command);
  const ready = !off && text.trim() !== "";
  const note = off ? "Running it in a disposable copy …" : "It runs in a disposable copy first. Nothing is kept yet.";
  return (
    <Panel title="Edit the command" verb="Try it" ready={ready} note={note} onSend={() => onSend(text)} onClose={onClose}>
      <Labelled label="Command">
        <CodeArea ref={takeFocus} value={text} onChange={setText} />
      </Labelled>
    </Panel>
  );
}
