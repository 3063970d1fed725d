/** What waits for people, in all tasks, and the standing approvals. */

import { useState } from "react";
import { request } from "../api/client";
import type { GrantEntry, InboxList, WaitingQuestion, WaitingRequest } from "../api/types";
import { PermissionDrawer } from "../parts/permission/drawer";
import { QuestionForm } from "../parts/permission/question";
import { Empty, Failure, Loaded, useNow } from "../parts/states";
import { Visible } from "../parts/text";
import { Link, navigate, pathTo } from "../router";
import { useAction } from "../state/action";
import { useConsole, useMayOperate } from "../state/console";
import { focusNeighbour } from "../state/focus";
import { useKeys } from "../state/keys";
import { formatAge } from "../text/format";
import { describeSubject, nameTool, summarizeRun } from "../text/permission";
import type { PageProps } from "./index";
import "./inbox.css";

interface Entry {
  id: string;
  time: string;
  tool: string;
  subject: string;
  facts: string;
  task: string;
  ready: boolean;
}

export default function InboxPage({ parts }: PageProps) {
  const { inbox } = useConsole();
  const open = parts[0] ?? null;
  return (
    <div className={open === null ? "inbox" : "inbox with-open"}>
      <section className="inbox-list" aria-labelledby="inbox-heading">
        <h1 id="inbox-heading">Inbox</h1>
        <Loaded from={inbox}>
          {(data) => (
            <>
              <WaitingTable entries={listEntries(data)} open={open} />
              <Grants grants={data.grants} onChange={inbox.reload} />
            </>
          )}
        </Loaded>
      </section>
      {open !== null && <OpenEntry key={open} id={open} inbox={inbox.data} />}
    </div>
  );
}

function listEntries(inbox: InboxList): readonly Entry[] {
  const requests = inbox.requests.map(fromRequest);
  const questions = inbox.questions.map(fromQuestion);
  return [...requests, ...questions].sort((a, b) => a.time.localeCompare(b.time));
}

function fromRequest(one: WaitingRequest): Entry {
  const run = one.request.preview?.tried ?? null;
  const facts = one.state === "ready" ? "answered, waits to run" : run !== null ? summarizeRun(run) : one.request.reason;
  const { id } = one.request;
  const ready = one.state === "ready";
  return { id, time: one.time, tool: nameTool(one.request), subject: describeSubject(one.request), facts, task: one.task, ready };
}

function fromQuestion(one: WaitingQuestion): Entry {
  const { toolCallId: id, question: subject } = one.question;
  return { id, time: one.time, tool: "question", subject, facts: "", task: one.task, ready: false };
}

function WaitingTable({ entries, open }: { entries: readonly Entry[]; open: string | null }) {
  const now = useNow();
  const move = (step: 1 | -1) => focusNeighbour(".inbox-list .row-link", step);
  useKeys({ ArrowDown: () => move(1), ArrowUp: () => move(-1), j: () => move(1), k: () => move(-1) });
  if (entries.length === 0) return <Empty>Nobody waits for you.</Empty>;
  return (
    <>
      <h2>Waiting {entries.filter((one) => !one.ready).length}</h2>
      <table className="rows">
        <thead>
          <tr>
            <th scope="col">Tool</th>
            <th scope="col">Call</th>
            <th scope="col" className="wide-only">
              Effect
            </th>
            <th scope="col" className="numeric">
              Age
            </th>
          </tr>
        </thead>
        <tbody>
          {entries.map((one) => (
            <tr key={one.id} aria-current={one.id === open ? "true" : undefined} onClick={() => navigate(pathTo("inbox", one.id))}>
              <td className="nowrap">
                <span className={one.ready ? "muted" : "warn"} aria-hidden="true">
                  {one.ready ? "○" : "!"}
                </span>{" "}
                {one.tool}
              </td>
              <td className="title">
                <Link to={pathTo("inbox", one.id)} className="row-link mono clip" onClick={(event) => event.stopPropagation()}>
                  <Visible text={one.subject.replaceAll("\n", " ⏎ ")} />
                </Link>
              </td>
              <td className="wide-only">
                <Visible text={one.facts} />
              </td>
              <td className="numeric muted">{formatAge(one.time, now)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** The drawer of an entry. One that is no longer in the list was answered elsewhere, or here. */
function OpenEntry({ id, inbox }: { id: string; inbox: InboxList | undefined }) {
  const mayOperate = useMayOperate();
  const [done, setDone] = useState<"here" | "elsewhere" | null>(null);
  const listed = inbox?.requests.find((one) => one.request.id === id);
  const question = inbox?.questions.find((one) => one.question.toolCallId === id);
  // Kept while it is on the screen, although the list moves on.
  const [known, setKnown] = useState<WaitingRequest | WaitingQuestion | undefined>(listed ?? question);
  const fresh = listed ?? question;
  if (fresh !== undefined && fresh !== known) setKnown(fresh);
  const isGone = inbox !== undefined && fresh === undefined;
  const task = (fresh ?? known)?.task ?? null;
  return (
    <section className="inbox-open" aria-label="Request">
      <header className="inbox-open-head">
        <Link to="/inbox">‹ Inbox</Link>
        {task !== null && <Link to={pathTo("tasks", task)}>Show the task</Link>}
      </header>
      {done === "here" && <p className="answered">✓ Answered. {task !== null && <Link to={pathTo("tasks", task)}>Show the task</Link>}</p>}
      {done !== "here" && (isGone || done === "elsewhere") && <p className="answered">⊘ Answered elsewhere, or no longer needed.</p>}
      {done === null && !isGone && listed?.state === "ready" && <p className="answered">○ It has its answer and waits to run.</p>}
      {done === null && listed?.state === "waiting" && (
        <PermissionDrawer
          request={listed.request}
          offline={false}
          mayAnswer={mayOperate}
          onAnswered={() => setDone("here")}
          onGone={() => setDone("elsewhere")}
        />
      )}
      {done === null && question !== undefined && (
        <QuestionForm question={question.question} offline={false} mayAnswer={mayOperate} onAnswered={() => setDone("here")} />
      )}
    </section>
  );
}

function Grants({ grants, onChange }: { grants: readonly GrantEntry[]; onChange: () => void }) {
  const now = useNow();
  const mayOperate = useMayOperate();
  const action = useAction();
  const { announce } = useConsole();
  const revoke = (id: string) =>
    action.run(async () => {
      await request("DELETE /api/grants/{grant}", { params: { grant: id } });
      announce("Revoked.");
      onChange();
    });
  return (
    <>
      <h2>Granted {grants.length}</h2>
      {action.error !== null && <Failure error={action.error} />}
      {grants.length === 0 ? (
        <p className="muted">Nothing is allowed for longer than one call.</p>
      ) : (
        <table className="rows">
          <thead>
            <tr>
              <th scope="col">Allows</th>
              <th scope="col">Scope</th>
              <th scope="col" className="numeric">
                Age
              </th>
              <th scope="col">
                <span className="only-read">Revoke</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {grants.map((one) => (
              <tr key={one.id}>
                <td className="title mono">
                  <Visible text={one.grant?.command ?? `${one.folder?.access ?? ""} ${one.folder?.path ?? ""}`} />
                </td>
                <td>{one.grant?.scope ?? one.folder?.scope}</td>
                <td className="numeric muted">{formatAge(one.grant?.time ?? one.folder?.time, now)}</td>
                <td className="numeric">
                  {mayOperate && (
                    <button type="button" disabled={action.busy} onClick={() => revoke(one.id)}>
                      Revoke
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
