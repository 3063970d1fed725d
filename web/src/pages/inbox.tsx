/** What waits for people, in all tasks, and the standing approvals. */

import { useState } from "react";
import { request } from "../api/client";
import type { GrantEntry, InboxList, WaitingQuestion, WaitingRequest } from "../api/types";
import { PermissionDrawer } from "../parts/permission/drawer";
import { QuestionForm } from "../parts/permission/question";
import { Split } from "../parts/split";
import { Sign } from "../parts/signs";
import { Empty, Failure, Loaded, useNow } from "../parts/states";
import { type Column, RowLink, Table } from "../parts/table";
import { Visible } from "../parts/text";
import { Link, pathTo } from "../router";
import { useAction } from "../state/action";
import { useConsole, useMayOperate } from "../state/console";
import { useListKeys } from "../state/focus";
import { formatAge, joinLines } from "../text/format";
import { describeSubject, nameTool, summarizeRun } from "../text/permission";
import type { PageProps } from "./index";
import "./inbox.css";

type Entry = WaitingRequest | WaitingQuestion;

export default function InboxPage({ parts }: PageProps) {
  const { inbox } = useConsole();
  const open = parts[0] ?? null;
  return (
    <Split name="inbox" title="Inbox" back="/inbox" open={open === null ? null : <OpenEntry key={open} id={open} inbox={inbox.data} />}>
      <Loaded from={inbox}>
        {(data) => (
          <>
            <WaitingTable entries={[...data.requests, ...data.questions].sort((a, b) => a.time.localeCompare(b.time))} open={open} />
            <Grants grants={data.grants} onChange={inbox.reload} />
          </>
        )}
      </Loaded>
    </Split>
  );
}

function isReady(one: Entry): boolean {
  return "request" in one && one.state === "ready";
}

function describeFacts(one: Entry): string {
  if ("question" in one) return "";
  const { preview, reason } = one.request;
  return isReady(one) ? "answered, waits to run" : preview?.tried != null ? summarizeRun(preview.tried) : reason;
}

function describeEntry(one: Entry): string {
  return joinLines("question" in one ? one.question.question : describeSubject(one.request));
}

function WaitingTable({ entries, open }: { entries: readonly Entry[]; open: string | null }) {
  const now = useNow();
  useListKeys();
  if (entries.length === 0) return <Empty>Nobody waits for you.</Empty>;
  return (
    <>
      <h2>Waiting {entries.filter((one) => !isReady(one)).length}</h2>
      <Table columns={listWaiting(now)} rows={entries} id={idOf} to={addressOf} current={open} />
    </>
  );
}

const idOf = (one: Entry) => ("question" in one ? one.question.toolCallId : one.request.id);
const addressOf = (one: Entry) => pathTo("inbox", idOf(one));

function listWaiting(now: number): readonly Column<Entry>[] {
  return [
    ["Tool", "nowrap", (one) => <><Sign name={isReady(one) ? "ready" : "waiting"} /> {"question" in one ? "question" : nameTool(one.request)}</>],
    ["Call", "title", (one) => <RowLink to={addressOf(one)} classes="mono clip"><Visible text={describeEntry(one)} /></RowLink>],
    ["Effect", "wide-only effect", (one) => <Visible text={describeFacts(one)} />],
    ["Age", "numeric muted", (one) => formatAge(one.time, now)],
  ];
}

/** The drawer of an entry. One that is no longer in the list was answered elsewhere, or here. */
function OpenEntry({ id, inbox }: { id: string; inbox: InboxList | undefined }) {
  const [done, setDone] = useState<"here" | "elsewhere" | null>(null);
  const fresh = inbox === undefined ? undefined : [...inbox.requests, ...inbox.questions].find((one) => idOf(one) === id);
  // Kept while it is on the screen, although the list moves on.
  const [known, setKnown] = useState(fresh);
  if (fresh !== undefined && fresh !== known) setKnown(fresh);
  const isGone = inbox !== undefined && fresh === undefined;
  const task = (fresh ?? known)?.task ?? null;
  return (
    <>
      {task !== null && <p><Link to={pathTo("tasks", task)}>Show the task</Link></p>}
      {done === "here" && <p>✓ Answered.</p>}
      {done !== "here" && (isGone || done === "elsewhere") && <p>⊘ Answered elsewhere, or no longer needed.</p>}
      {done === null && fresh !== undefined && isReady(fresh) && <p>○ It has its answer and waits to run.</p>}
      {done === null && fresh !== undefined && "request" in fresh && !isReady(fresh) && (
        <PermissionDrawer
          request={fresh.request}
          offline={false}
          onAnswered={() => setDone("here")}
          onGone={() => setDone("elsewhere")}
        />
      )}
      {done === null && fresh !== undefined && "question" in fresh && (
        <QuestionForm question={fresh.question} offline={false} onAnswered={() => setDone("here")} />
      )}
    </>
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
  const columns: readonly Column<GrantEntry>[] = [
    ["Allows", "title mono", ({ grant, folder }) => <Visible text={grant?.command ?? `${folder?.access ?? ""} ${folder?.path ?? ""}`} />],
    ["Scope", "", ({ grant, folder }) => grant?.scope ?? folder?.scope],
    ["Age", "numeric muted", ({ grant, folder }) => formatAge(grant?.time ?? folder?.time, now)],
    ["Revoke", "numeric revoke", ({ id }) => mayOperate && <button type="button" disabled={action.busy} onClick={() => revoke(id)}>Revoke</button>],
  ];
  return (
    <>
      <h2>Granted {grants.length}</h2>
      {action.error !== null && <Failure error={action.error} />}
      {grants.length === 0 ? (
        <p className="muted">Nothing is allowed for longer than one call.</p>
      ) : (
        <Table columns={columns} rows={grants} id={(one) => one.id} />
      )}
    </>
  );
}
