/** What a person sees of a request before the answer: the whole call, its parts, the preview. */

import { type RefObject, useMemo, useState } from "react";
import type { DecisionPart, PermissionRequest, Preview, PreviewRun } from "../../api/types";
import { formatPlural, shorten } from "../../text/format";
import {
  describeAge,
  describeEffect,
  describeNovelty,
  describeOutdated,
  listChanges,
  listFolders,
  listRemarks,
  nameVerdict,
} from "../../text/permission";
import { isString } from "../../text/json";
import { hasMixedScripts } from "../../text/visible";
import { ChangeTable } from "../change_table";
import { DiffView } from "../diff";
import { Output } from "../output";
import { Sign } from "../signs";
import { useNow } from "../states";
import { type Tab, Tabs } from "../tabs";
import { Visible, Warnings } from "../text";

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
        <PartTable parts={asking} describe={(part) => [`needs approval: ${part.effect === undefined || part.effect === "" ? part.reason : part.effect}`]} />
      ) : (
        <p>
          needs approval: <Visible text={request.reason} /> <span className="muted">rule {request.rule}</span>
        </p>
      )}
      <Circumstances request={request} />
      {outdated.length > 0 ? (
        <p className="request-effect bad" role="status">
          <Sign name="failed" />{" "}
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

/** The parts of a command. The whole one stands above them. */
function PartTable({ parts, describe }: { parts: readonly DecisionPart[]; describe: (part: DecisionPart) => readonly string[] }) {
  return (
    <table className="request-parts">
      <tbody>
        {parts.map((part, place) => (
          <tr key={place}>
            <th scope="row">
              <Visible text={shorten(part.subject, MAX_PART)} />
            </th>
            {describe(part).map((text) => (
              <td key={text}>
                <Visible text={text} />
              </td>
            ))}
            <td className="muted">rule {part.rule}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function CallText({ request, box, onScroll }: { request: PermissionRequest; box: RefObject<HTMLPreElement | null>; onScroll: () => void }) {
  const sent = request.preview?.kind === "input" ? request.preview.text : "";
  const text = request.command ?? (sent !== "" ? sent : null);
  return (
    <>
      {request.command == null && (
        <Visible as="p" className="request-description" text={request.description} />
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
  const { background = false, hosts = [] } = request;
  const warnings = [
    request.edited === true && "You edited this command. The result tells the model so.",
    request.unusual != null && describeNovelty(request.unusual),
    request.tier === 0 && "No sandbox here: the command could read and change everything that you can (handrail doctor).",
    background && "Keeps running after the call; not covered by undo.",
  ];
  return (
    <>
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
      <Warnings texts={warnings.filter(isString)} />
      {hosts.length > 0 && (
        <p>
          Would open <Hosts hosts={hosts} /> {background ? "while it runs." : "for this call."}
        </p>
      )}
      {request.kind === "external_directory" && (
        <Visible as="p" className="path" text={listFolders(request).join(", ")} />
      )}
    </>
  );
}

function Hosts({ hosts }: { hosts: readonly string[] }) {
  return hosts.map((host, place) => (
    <span key={host}>
      {place > 0 && ", "}
      <Visible as="span" className="mono" text={host} />
      {hasMixedScripts(host) && <span className="warn"> (mixes scripts)</span>}
    </span>
  ));
}

function ChangeSummary({ run }: { run: PreviewRun }) {
  const changes = useMemo(() => listChanges(run), [run]);
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
      <Warnings about="Cannot be kept: " texts={run.unkept ?? []} />
    </>
  );
}

function RequestTabs({ request, run }: { request: PermissionRequest; run: PreviewRun | null }) {
  const { hosts = [] } = request;
  const preview = request.preview ?? null;
  const blocked = run?.blocked ?? [];
  const hasDiff = preview !== null && (run !== null || preview.kind === "diff");
  const tabs: readonly (Tab | false)[] = [
    run !== null && { id: "output", title: `Output ${run.lines ?? 0}`, content: <PreviewOutput text={preview?.output ?? ""} run={run} /> },
    hasDiff && { id: "changes", title: run === null ? "Changes" : `Changes ${run.files ?? 0}`, content: <PreviewDiff preview={preview} run={run} /> },
    (run !== null || hosts.length > 0) && { id: "network", title: `Network ${blocked.length}`, content: <PreviewNetwork hosts={hosts} blocked={blocked} /> },
    { id: "why", title: "Why?", content: <Why request={request} /> },
  ];
  const [chosen, setChosen] = useState<string | null>(null);
  const changes = preview?.kind === "diff" || (run?.changes ?? []).length > 0;
  const first = changes ? "changes" : (run?.lines ?? 0) > 0 ? "output" : "why";
  return <Tabs label="Preview" tabs={tabs.filter((tab) => tab !== false)} current={chosen ?? first} onChange={setChosen} />;
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

function PreviewDiff({ preview, run }: { preview: Preview; run: PreviewRun | null }) {
  const changes = run === null ? [] : listChanges(run);
  const notes = new Map(changes.map((change) => [change.path, listRemarks(change).map((remark) => remark.text)]));
  return (
    <>
      {changes.length > FIRST_ROWS && <ChangeTable changes={changes} />}
      {preview.text === "" && <p className="muted">There is no diff to show.</p>}
      <DiffView text={preview.text} truncated={preview.truncated ?? false} notes={notes} />
    </>
  );
}

function PreviewNetwork({ hosts, blocked }: { hosts: readonly string[]; blocked: readonly string[] }) {
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
      {isNew && <PartTable parts={parts} describe={(part) => [nameVerdict(part.decision), part.reason]} />}
      {request.permissions.length > 0 && <p>Permissions: {request.permissions.join(", ")}.</p>}
      <p className="note">
        Request {request.id}, revision {request.revision ?? 0}, in session {request.sessionId}.
      </p>
    </div>
  );
}
