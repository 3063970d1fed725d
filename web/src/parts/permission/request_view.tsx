/** What a person sees of a request before the answer: the whole call, its parts, the preview. */

import { type RefObject, useMemo, useState } from "react";
import type { Change, PermissionRequest, PreviewRun } from "../../api/types";
import { formatPlural } from "../../text/format";
import {
  describeAge,
  describeEffect,
  describeNovelty,
  describeOutdated,
  letterOf,
  listChanges,
  listRemarks,
  nameVerdict,
} from "../../text/permission";
import { hasMixedScripts } from "../../text/visible";
import { Counts, DiffView } from "../diff";
import { Output } from "../output";
import { useNow } from "../states";
import { type Tab, Tabs } from "../tabs";
import { Visible } from "../text";

const FIRST_ROWS = 6;
const MAX_PART = 100;

interface Props {
  request: PermissionRequest;
  outdated: readonly string[];
  /** The box of the command, to see whether it was read to its end. */
  command: RefObject<HTMLPreElement | null>;
  onScroll: () => void;
}

export function RequestView({ request, outdated, command, onScroll }: Props) {
  const now = useNow();
  const run = request.preview?.tried ?? null;
  const asking = (request.parts ?? []).filter((part) => part.decision === "confirm");
  return (
    <>
      <CallText request={request} box={command} onScroll={onScroll} />
      {asking.length > 0 ? (
        <table className="request-parts">
          <tbody>
            {asking.map((part, place) => (
              <tr key={place}>
                <th scope="row">
                  <Visible text={shortenPart(part.subject)} />
                </th>
                <td>needs approval: {part.effect !== undefined && part.effect !== "" ? part.effect : part.reason}</td>
                <td className="muted">rule {part.rule}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p>
          needs approval: <Visible text={request.reason} /> <span className="muted">rule {request.rule}</span>
        </p>
      )}
      <Circumstances request={request} />
      {outdated.length > 0 ? (
        <p className="request-effect bad" role="status">
          <span aria-hidden="true">✗ </span>
          {describeOutdated(outdated)} Your files are untouched.
        </p>
      ) : (
        <p className={run !== null && run.exitCode !== 0 ? "request-effect warn" : "request-effect"}>
          {describeEffect(request)} <span className="muted">{describeAge(request, now)}</span>
        </p>
      )}
      {run !== null && <ChangeSummary run={run} />}
      <RequestTabs request={request} run={run} />
    </>
  );
}

/** The whole command stands above its parts. */
function shortenPart(subject: string): string {
  return subject.length > MAX_PART ? `${subject.slice(0, MAX_PART)}…` : subject;
}

function CallText({ request, box, onScroll }: { request: PermissionRequest; box: RefObject<HTMLPreElement | null>; onScroll: () => void }) {
  const sent = request.preview?.kind === "input" ? request.preview.text : "";
  const text = request.command ?? (sent !== "" ? sent : null);
  return (
    <>
      {request.command == null && (
        <p className="request-description">
          <Visible text={request.description} />
        </p>
      )}
      {text !== null && (
        // The command has to be read to its end, by the keyboard too.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <pre ref={box} className="command request-command" tabIndex={0} onScroll={onScroll} aria-label="Command">
          {text.split("\n").map((line, place) => (
            <div key={place}>
              <span className="muted" aria-hidden="true">
                {request.command == null || place > 0 ? "> " : "$ "}
              </span>
              <Visible text={line} />
            </div>
          ))}
        </pre>
      )}
    </>
  );
}

function Circumstances({ request }: { request: PermissionRequest }) {
  const hosts = request.hosts ?? [];
  return (
    <>
      {request.edited === true && <p className="warn">! You edited this command. The result tells the model so.</p>}
      {request.command != null && request.cwd != null && request.cwd !== "." && (
        <p className="note">
          Runs in the folder <Visible text={request.cwd} />
        </p>
      )}
      {request.purpose != null && request.purpose !== "" && (
        <p className="note">
          The model says: “<Visible text={request.purpose} />”
        </p>
      )}
      {request.unusual != null && (
        <p className="warn">
          ! <Visible text={describeNovelty(request.unusual)} />
        </p>
      )}
      {request.tier === 0 && (
        <p className="warn">! No sandbox here: the command could read and change everything that you can (handrail doctor).</p>
      )}
      {hosts.length > 0 && (
        <p>
          Would open <Hosts hosts={hosts} /> {request.background === true ? "while it runs." : "for this call."}
        </p>
      )}
      {request.background === true && <p className="warn">! Keeps running after the call; not covered by undo.</p>}
      {request.kind === "external_directory" && (
        <p className="path">
          <Visible text={(request.pattern ?? []).filter((_, place) => place % 2 === 0).join(", ")} />
        </p>
      )}
    </>
  );
}

function Hosts({ hosts }: { hosts: readonly string[] }) {
  return hosts.map((host, place) => (
    <span key={host}>
      {place > 0 && ", "}
      <span className="mono">
        <Visible text={host} />
      </span>
      {hasMixedScripts(host) && <span className="warn"> (mixes scripts)</span>}
    </span>
  ));
}

function ChangeSummary({ run }: { run: PreviewRun }) {
  const changes = useMemo(() => listChanges(run), [run]);
  const unkept = run.unkept ?? [];
  const more = Math.max(0, Math.max(changes.length, run.files ?? 0) - FIRST_ROWS);
  return (
    <>
      {changes.length > 0 ? (
        <div>
          <p>Would change {formatPlural(Math.max(run.files ?? 0, changes.length), "file")}:</p>
          <ChangeTable changes={changes.slice(0, FIRST_ROWS)} />
          {more > 0 && <p className="note">and {more} more</p>}
        </div>
      ) : (
        <p>Would change no files.</p>
      )}
      {unkept.map((path) => (
        <p key={path} className="warn">
          ! Cannot be kept: <Visible text={path} />
        </p>
      ))}
    </>
  );
}

export function ChangeTable({ changes }: { changes: readonly Change[] }) {
  return (
    <table className="change-table">
      <tbody>
        {changes.map((change) => {
          const { letter, verb } = letterOf(change);
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
                <Counts added={change.added ?? 0} removed={change.removed ?? 0} />
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

function RequestTabs({ request, run }: { request: PermissionRequest; run: PreviewRun | null }) {
  const tabs = buildTabs(request, run);
  const [chosen, setChosen] = useState<string | null>(null);
  const diff = request.preview?.kind === "diff" || (run !== null && (run.changes ?? []).length > 0);
  const first = diff ? "changes" : run !== null && (run.lines ?? 0) > 0 ? "output" : "why";
  return <Tabs label="Preview" tabs={tabs} current={chosen ?? first} onChange={setChosen} />;
}

function buildTabs(request: PermissionRequest, run: PreviewRun | null): readonly Tab[] {
  const preview = request.preview ?? null;
  const tabs: Tab[] = [];
  if (run !== null) {
    tabs.push({ id: "output", title: `Output ${run.lines ?? 0}`, content: <PreviewOutput text={preview?.output ?? ""} run={run} /> });
  }
  if (preview !== null && (run !== null || preview.kind === "diff")) {
    const count = run === null ? "" : ` ${run.files ?? 0}`;
    tabs.push({ id: "changes", title: `Changes${count}`, content: <PreviewDiff request={request} run={run} /> });
  }
  const blocked = run?.blocked ?? [];
  if (run !== null || (request.hosts ?? []).length > 0) {
    tabs.push({ id: "network", title: `Network ${blocked.length}`, content: <PreviewNetwork request={request} blocked={blocked} /> });
  }
  tabs.push({ id: "why", title: "Why?", content: <Why request={request} /> });
  return tabs;
}

function PreviewOutput({ text, run }: { text: string; run: PreviewRun }) {
  if (text === "") return <p className="muted">Printed nothing.</p>;
  return (
    <>
      <Output text={text} />
      {(run.lines ?? 0) > text.split("\n").length && <p className="note">Printed {run.lines} lines. This is a part of them.</p>}
    </>
  );
}

function PreviewDiff({ request, run }: { request: PermissionRequest; run: PreviewRun | null }) {
  const preview = request.preview;
  const changes = run === null ? [] : listChanges(run);
  const notes = new Map(changes.map((change) => [change.path, listRemarks(change).map((remark) => remark.text)]));
  return (
    <>
      {changes.length > FIRST_ROWS && <ChangeTable changes={changes} />}
      {preview?.text !== undefined && preview.text !== "" ? (
        <DiffView text={preview.text} truncated={preview.truncated ?? false} notes={notes} />
      ) : (
        <p className="muted">There is no diff to show.</p>
      )}
    </>
  );
}

function PreviewNetwork({ request, blocked }: { request: PermissionRequest; blocked: readonly string[] }) {
  const hosts = request.hosts ?? [];
  return (
    <>
      {blocked.length === 0 && <p className="muted">It tried to reach nothing.</p>}
      {blocked.map((host) => (
        <p key={host}>
          ! Tried to reach <Visible text={host} /> (blocked).
        </p>
      ))}
      {hosts.length > 0 && (
        <p>
          Approval opens <Hosts hosts={hosts} />.
        </p>
      )}
    </>
  );
}

function Why({ request }: { request: PermissionRequest }) {
  const parts = request.parts ?? [];
  // If all parts need approval, they are shown above.
  const isNew = parts.some((part) => part.decision !== "confirm");
  return (
    <div className="stack">
      <p>
        Rule <code>{request.rule}</code> needs your approval: <Visible text={request.reason} />.
      </p>
      {isNew && (
        <table className="request-parts">
          <tbody>
            {parts.map((part, place) => (
              <tr key={place}>
                <th scope="row">
                  <Visible text={shortenPart(part.subject)} />
                </th>
                <td>{nameVerdict(part.decision)}</td>
                <td>
                  <Visible text={part.reason} />
                </td>
                <td className="muted">rule {part.rule}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {request.permissions.length > 0 && <p>Permissions: {request.permissions.join(", ")}.</p>}
      <p className="note">
        Request {request.id}, revision {request.revision ?? 0}, in session {request.sessionId}.
      </p>
    </div>
  );
}
