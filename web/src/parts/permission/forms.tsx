/** What an answer needs besides a click: a reason, the grants, another command. */

import { type KeyboardEvent, type ReactNode, type SyntheticEvent, useEffect, useRef, useState } from "react";
import type { NewAnswer, PermissionRequest } from "../../api/types";
import { Visible } from "../text";

interface FrameProps {
  title: string;
  onSend: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A small form inside the drawer. Escape leaves it. */
function Frame({ title, onSend, onClose, children }: FrameProps) {
  const press = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      onClose();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onSend();
    }
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    onSend();
  };
  return (
    // Escape in any of its fields leaves the form.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <form className="drawer-form" aria-label={title} onSubmit={submit} onKeyDown={press}>
      {children}
    </form>
  );
}

/** The focus goes to a field that the person asked for. */
function useFocus<T extends HTMLElement>() {
  const field = useRef<T>(null);
  useEffect(() => field.current?.focus(), []);
  return field;
}

interface ReasonProps {
  verb: "Drop" | "Reject";
  off: boolean;
  onSend: (reason: string | null) => void;
  onClose: () => void;
}

export function ReasonForm({ verb, off, onSend, onClose }: ReasonProps) {
  const [reason, setReason] = useState("");
  const field = useFocus<HTMLTextAreaElement>();
  const send = () => {
    if (!off) onSend(reason.trim() === "" ? null : reason.trim());
  };
  return (
    <Frame title={`${verb} with a reason`} onSend={send} onClose={onClose}>
      <label className="stack">
        Why? The model reads it.
        <textarea ref={field} rows={2} value={reason} onChange={(event) => setReason(event.target.value)} />
      </label>
      <div className="row">
        <button type="submit" className="danger" disabled={off}>
          {reason.trim() === "" ? `${verb} without a reason` : verb}
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Frame>
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

type GrantKind = "session" | "workspace" | "edits";

/** Says exactly what is allowed from now on. Single grants can be left out. */
export function GrantChooser({ request, scope, verb, off, onSend, onClose }: GrantProps) {
  const offered = request.grants ?? [];
  const kinds = (["session", "workspace", "edits"] as const).filter((kind) => request.answers.includes(kind));
  const [kind, setKind] = useState<GrantKind | undefined>(kinds.includes(scope) ? scope : kinds[0]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(offered));
  const isFolder = request.kind === "external_directory";
  const needsGrant = kind !== "edits" && !isFolder && offered.length > 0;
  const ready = !off && kind !== undefined && (!needsGrant || chosen.size > 0);
  const send = () => {
    if (!ready) return;
    onSend(needsGrant ? { kind, grants: offered.filter((one) => chosen.has(one)) } : { kind });
  };
  const toggle = (grant: string) => {
    const next = new Set(chosen);
    if (!next.delete(grant)) next.add(grant);
    setChosen(next);
  };
  return (
    <Frame title={`${verb} and allow`} onSend={send} onClose={onClose}>
      <fieldset className="row">
        <legend>Stop asking</legend>
        {kinds.map((one) => (
          <label key={one} className="row">
            <input type="radio" name="scope" checked={kind === one} onChange={() => setKind(one)} />
            {nameKind(one)}
          </label>
        ))}
      </fieldset>
      {isFolder && (
        <p>
          Opens <Visible text={(request.pattern ?? []).filter((_, place) => place % 2 === 0).join(", ")} />
        </p>
      )}
      {needsGrant && (
        <fieldset className="row">
          <legend>for</legend>
          {offered.map((grant) => (
            <label key={grant} className="row">
              <input type="checkbox" checked={chosen.has(grant)} onChange={() => toggle(grant)} />
              <code>
                <Visible text={grant} />
              </code>
            </label>
          ))}
        </fieldset>
      )}
      <div className="row">
        <button type="submit" className="primary" disabled={!ready}>
          {verb} and allow
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Frame>
  );
}

function nameKind(kind: GrantKind): string {
  switch (kind) {
    case "session":
      return "in this session";
    case "workspace":
      return "in this workspace";
    case "edits":
      return "for plain edits in this session";
  }
}

interface EditorProps {
  command: string;
  off: boolean;
  onSend: (command: string) => void;
  onClose: () => void;
}

export function CommandEditor({ command, off, onSend, onClose }: EditorProps) {
  const [text, setText] = useState(command);
  const field = useFocus<HTMLTextAreaElement>();
  const ready = !off && text.trim() !== "";
  const send = () => {
    if (ready) onSend(text);
  };
  return (
    <Frame title="Edit the command" onSend={send} onClose={onClose}>
      <label className="stack">
        Command
        <textarea
          ref={field}
          className="mono"
          rows={Math.min(10, text.split("\n").length + 1)}
          spellCheck={false}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <div className="row">
        <button type="submit" className="primary" disabled={!ready}>
          Try it
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <span className="note">{off ? "Running it in a disposable copy …" : "It runs in a disposable copy first. Nothing is kept yet."}</span>
      </div>
    </Frame>
  );
}
