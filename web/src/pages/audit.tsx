/** The audit: every call with its decision, the check of the chain, export. */

import { type ReactNode, useState } from "react";
import { request } from "../api/client";
import type { AuditCheck, ChainedRecord } from "../api/types";
import { Code } from "../parts/code";
import { Dialog } from "../parts/dialog";
import { Choice, SearchField } from "../parts/fields";
import { type Column, RowLink, Table } from "../parts/table";
import { Sign } from "../parts/signs";
import { Empty, Failure, Loaded, useNow } from "../parts/states";
import { Visible } from "../parts/text";
import { Link, navigate, pathTo, setQuery } from "../router";
import { useAction } from "../state/action";
import { useListKeys } from "../state/focus";
import { useRoute } from "../state/resource";
import { formatClock, formatDuration } from "../text/format";
import { nameVerdict } from "../text/permission";
import type { PageProps } from "./index";

const PAGE = 200;
const MOST = 1000;
const ANSWERED: Readonly<Record<string, string>> = { preview: "allowed by its preview", grant: "allowed by a grant" };

export default function AuditPage({ parts, query }: PageProps) {
  const [limit, setLimit] = useState(PAGE);
  const wanted = parts[0];
  const page = useRoute("GET /api/audit", { query: { limit } }, { every: 5000 });
  useListKeys(".row-link", wanted === undefined);
  const search = query.size > 0 ? `?${query.toString()}` : "";
  const close = () => navigate(`/audit${search}`);
  return (
    <div className="page">
      <header className="page-head">
        <h1>Audit</h1>
        <Verify />
      </header>
      <Loaded from={page}>
        {({ records }) => {
          const known = records.filter((one) => one !== null);
          const listed = known.filter((one) => fits(one, query)).toReversed();
          const opened = known.find((one) => one.tool_call_id === wanted);
          return (
            <>
              <Filters records={known} listed={listed} query={query} />
              {known.length < records.length && <p className="bad">✗ {records.length - known.length} records were changed and cannot be read.</p>}
              {listed.length === 0 ? <Empty>{known.length === 0 ? "No calls yet." : "No record fits the filter."}</Empty> : <Rows records={listed} search={search} />}
              {records.length === limit && limit < MOST && (
                <button type="button" className="quiet" onClick={() => setLimit(MOST)}>
                  Show the last {MOST.toLocaleString("en")}
                </button>
              )}
              {opened !== undefined && <Sheet record={opened} onClose={close} />}
              {wanted !== undefined && opened === undefined && (
                <Dialog title="Record" onClose={close}>
                  <p>The call {wanted} is not among the last {records.length} records.</p>
                  {limit < MOST && (
                    <button type="button" onClick={() => setLimit(MOST)}>Look in the last {MOST.toLocaleString("en")}</button>
                  )}
                </Dialog>
              )}
            </>
          );
        }}
      </Loaded>
    </div>
  );
}

function fits(record: ChainedRecord, query: URLSearchParams): boolean {
  const is = (key: string, value: string) => !query.has(key) || query.get(key) === value;
  const file = query.get("file") ?? "";
  const text = [record.summary, record.command ?? "", record.session_id, ...record.files_changed, JSON.stringify(record.args)].join("\n");
  return is("tool", nameCall(record)) && is("decision", nameDecision(record)) && is("rule", record.rule) && is("ok", record.ok ? "ok" : "failed") && text.includes(file);
}

function nameCall(record: ChainedRecord): string {
  return record.server_name === undefined ? record.name : `${record.tool_name ?? record.name} (${record.server_name})`;
}

function nameDecision(record: ChainedRecord): string {
  const by = record.answered_by === undefined ? undefined : ANSWERED[record.answered_by];
  return by ?? (record.decision === "confirm" && record.ok ? "approved by a person" : nameVerdict(record.decision));
}

function Filters({ records, listed, query }: { records: readonly ChainedRecord[]; listed: readonly ChainedRecord[]; query: URLSearchParams }) {
  const values = (read: (one: ChainedRecord) => string) => Array.from(new Set(records.map(read))).sort();
  const choice = (key: string, all: string, options: readonly string[]) => (
    <Choice label={key} value={query.get(key) ?? ""} all={all} options={options} onChange={(value) => setQuery({ [key]: value })} />
  );
  return (
    <div className="filters">
      {choice("tool", "every tool", values(nameCall))}
      {choice("decision", "every decision", values(nameDecision))}
      {choice("rule", "every rule", values((one) => one.rule))}
      {choice("ok", "ok or failed", ["ok", "failed"])}
      <SearchField label="File or text" placeholder="File or text" value={query.get("file") ?? ""} onChange={(value) => setQuery({ file: value })} />
      <button type="button" disabled={listed.length === 0} onClick={() => exportLines(listed.toReversed())}>
        Export {listed.length.toLocaleString("en")}
      </button>
    </div>
  );
}

/** What is listed as a file with one JSON object in each line. */
function exportLines(records: readonly ChainedRecord[]): void {
  const blob = new Blob(records.map((one) => `${JSON.stringify(one)}\n`), { type: "application/x-ndjson" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = "handrail-audit.jsonl";
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function Rows({ records, search }: { records: readonly ChainedRecord[]; search: string }) {
  const now = useNow();
  const to = (one: ChainedRecord) => pathTo("audit", one.tool_call_id) + search;
  const columns: readonly Column<ChainedRecord>[] = [
    ["Time", "nowrap muted", (one) => formatClock(one.time, now)],
    ["Call", "title", (one) => <Call record={one} to={to(one)} />],
    ["Decision", "nowrap wide-only", nameDecision],
    ["Rule", "nowrap wide-only mono", (one) => one.rule],
    ["Took", "numeric", (one) => formatDuration(one.duration_ms)],
  ];
  return <Table columns={columns} rows={records} id={(one) => `${one.session_id} ${one.tool_call_id}`} to={to} />;
}

function Call({ record, to }: { record: ChainedRecord; to: string }) {
  return (
    <RowLink to={to}>
      <Sign name={record.ok ? "ok" : record.decision === "deny" ? "denied" : "failed"} />{" "}
      <b>{nameCall(record)}</b> <span className="only-read">{record.ok ? "ok" : "failed"}</span> <Visible text={record.command ?? record.summary} />
    </RowLink>
  );
}

function Sheet({ record, onClose }: { record: ChainedRecord; onClose: () => void }) {
  const facts: readonly (readonly [string, ReactNode])[] = [
    ["Call", <Visible key="call" text={record.command ?? JSON.stringify(record.args)} />],
    ["Decision", `${nameDecision(record)}, rule ${record.rule}`],
    ["Result", <Visible key="result" text={`${record.error_code ?? "ok"}: ${record.summary}`} />],
    ["Files changed", <Visible key="files" text={record.files_changed.join(", ") || "none"} />],
    ["Time", `${new Date(record.time).toLocaleString("en-GB")}, took ${formatDuration(record.duration_ms)}`],
    ["Task", <Link key="task" to={pathTo("tasks", record.session_id, "calls", record.tool_call_id)}>{record.session_id}</Link>],
  ];
  return (
    <Dialog title={nameCall(record)} shape="sheet" onClose={onClose}>
      <dl className="facts">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <h3>Raw record</h3>
      <Code text={JSON.stringify(record, null, 2)} language="json" />
    </Dialog>
  );
}

function Verify() {
  const action = useAction();
  const [check, setCheck] = useState<{ found: AuditCheck; time: string } | null>(null);
  const verify = () =>
    action.run(async () => {
      setCheck(null);
      setCheck({ found: await request("POST /api/audit/verify"), time: formatClock(new Date().toISOString(), Date.now()) });
    });
  return (
    <>
      <span className="row end" role="status">
        {action.busy && <span className="muted">Checking every record …</span>}
        {check?.found.intact === true && (
          <span className="ok">
            ✓ {check.found.records.toLocaleString("en")} records intact <span className="muted">{check.time}</span>
          </span>
        )}
      </span>
      <button type="button" disabled={action.busy} onClick={verify}>Verify</button>
      {action.error !== null && <Failure error={action.error} />}
      {check !== null && !check.found.intact && (
        <div className="failure broken" role="alert">
          <b>✗ The audit is not intact.</b>
          {[...check.found.problems, ...check.found.unread].map((one) => <p key={one}><Visible text={one} /></p>)}
        </div>
      )}
    </>
  );
}
