/** What waits for people, in all tasks, and the standing approvals. */

import { type ReactNode, useState } from "react";
import { request } from "../api/client";
import type { GrantEntry, InboxList, WaitingQuestion, WaitingRequest } from "../api/types";
import { PermissionDrawer } from "../parts/permission/drawer";
import { QuestionForm } from "../parts/permission/question";
import { Empty, Failure, Loaded, useNow } from "../parts/states";
import { type Column, RowLink, Table } from "../parts/table";
import { Visible } from "../parts/text";
import { Link, pathTo } from "../router";
import { useAction } from "../state/action";
import { useConsole, useMayOperate } from "../state/console";
import { useListKeys } from "../state/focus";
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
  useListKeys(".inbox-list .row-link");
  if (entries.length === 0) return <Empty>Nobody waits for you.</Empty>;
  return (
    <>
      <h2>Waiting {entries.filter((one) => !one.ready).length}</h2>
      <Table columns={WAITING} rows={entries.map((one) => ({ key: one.id, to: pathTo("inbox", one.id), current: one.id === open, cells: listCells(one, now) }))} />
    </>
  );
}

const WAITING: readonly Column[] = [["Tool", "nowrap"], ["Call", "title"], ["Effect", "wide-only effect"], ["Age", "numeric muted"]];

function listCells(one: Entry, now: number): readonly ReactNode[] {
  const tool = (
    <>
      <span className={one.ready ? "muted" : "warn"} aria-hidden="true">{one.ready ? "○" : "!"}</span> {one.tool}
    </>
  );
  const call = (
    <RowLink to={pathTo("inbox", one.id)} classes="mono clip">
      <Visible text={one.subject.replaceAll("\n", " ⏎ ")} />
    </RowLink>
  );
  return [tool, call, <Visible key="facts" text={one.facts} />, formatAge(one.time, now)];
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

const GRANTED: readonly Column[] = [["Allows", "title mono"], ["Scope"], ["Age", "numeric muted"], ["Revoke", "numeric revoke"]];

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
  const listGrant = ({ id, grant, folder }: GrantEntry) => [
    <Visible key="allows" text={grant?.command ?? `${folder?.access ?? ""} ${folder?.path ?? ""}`} />,
    grant?.scope ?? folder?.scope,
    formatAge(grant?.time ?? folder?.time, now),
    mayOperate && <button key="revoke" type="button" disabled={action.busy} onClick={() => revoke(id)}>Revoke</button>,
  ];
  return (
    <>
      <h2>Granted {grants.length}</h2>
      {action.error !== null && <Failure error={action.error} />}
      {grants.length === 0 ? (
        <p className="muted">Nothing is allowed for longer than one call.</p>
      ) : (
        <Table columns={GRANTED} rows={grants.map((one) => ({ key: one.id, cells: listGrant(one) }))} />
      )}
    </>
  );
}
