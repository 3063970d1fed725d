/** Background processes: what runs, its output as it comes, stop. */

import { useEffect, useState } from "react";
import { describeFailure, request } from "../api/client";
import type { ProcessRecord } from "../api/types";
import { Output } from "../parts/output";
import { Split } from "../parts/split";
import { StateLabel } from "../parts/signs";
import { type Column, RowLink, Table } from "../parts/table";
import { Empty, Failure, Loaded, useNow } from "../parts/states";
import { Visible } from "../parts/text";
import { Link, pathTo } from "../router";
import { useAction } from "../state/action";
import { useMayOperate } from "../state/console";
import { useListKeys } from "../state/focus";
import { useRoute } from "../state/resource";
import { formatAge, formatSize, joinLines } from "../text/format";
import type { PageProps } from "./index";

const EVERY_MS = 1000;
const MAX_KEPT = 500_000;

export default function ProcessesPage({ parts }: PageProps) {
  const list = useRoute("GET /api/processes", {}, { every: 2000 });
  const id = parts[0];
  const current = list.data?.processes.find((one) => one.id === id);
  useListKeys();
  return (
    <Split title="Processes" back="/processes" open={current === undefined ? null : <OpenProcess key={current.id} process={current} onChange={list.reload} />}>
      <Loaded from={list}>
        {({ processes }) => (
          <>
            {id !== undefined && current === undefined && <p className="bad">There is no process {id}.</p>}
            {!processes.some((one) => one.state === "running") && <Empty>Nothing is running.</Empty>}
            {processes.length > 0 && <Rows processes={processes} current={id} />}
          </>
        )}
      </Loaded>
    </Split>
  );
}

/** `running`, `exit 1`, `stopped`. */
function State({ process }: { process: ProcessRecord }) {
  const { state, reason, signal, exitCode } = process;
  const isBad = state === "lost" || (reason !== "stopped" && (exitCode ?? 0) !== 0);
  const name = state === "running" ? "running" : isBad ? "interrupted" : reason === "stopped" ? "cancelled" : "exited";
  const words = state === "ended" ? (reason ?? signal ?? `exit ${String(exitCode ?? "not known")}`) : state;
  return <StateLabel name={name}>{words}</StateLabel>;
}

function listColumns(now: number): readonly Column<ProcessRecord>[] {
  return [
    ["State", "", (one) => <State process={one} />],
    ["Command", "title", (one) => <Command process={one} />],
    ["Ports", "wide-only mono", listPorts],
    ["Output", "numeric wide-only", (one) => formatSize(one.size ?? 0)],
    ["Age", "numeric muted", (one) => formatAge(one.ended ?? one.started, now)],
  ];
}

const addressOf = (process: ProcessRecord) => pathTo("processes", process.id);

function Command({ process }: { process: ProcessRecord }) {
  return (
    <>
      <RowLink to={addressOf(process)} classes="mono clip"><Visible text={joinLines(process.command)} /></RowLink>
      <span className="note mono clip"><Visible text={process.lastLine ?? ""} /></span>
    </>
  );
}

function Rows({ processes, current }: { processes: readonly ProcessRecord[]; current: string | undefined }) {
  const now = useNow(1000);
  const listed = processes.toSorted((a, b) => Number(b.state === "running") - Number(a.state === "running") || b.started.localeCompare(a.started));
  return <Table columns={listColumns(now)} rows={listed} id={(one) => one.id} to={addressOf} current={current} />;
}

function listPorts(process: ProcessRecord): string {
  return (process.ports ?? []).map((port) => `:${port}`).join(" ");
}

function OpenProcess({ process, onChange }: { process: ProcessRecord; onChange: () => void }) {
  const now = useNow(1000);
  const mayOperate = useMayOperate();
  const action = useAction();
  const { text, dropped, problem } = useLiveOutput(process.id);
  const stop = () =>
    action.run(async () => {
      await request("POST /api/processes/{process}/stop", { params: { process: process.id } });
      onChange();
    });
  const ended = process.ended ?? null;
  return (
    <>
      <pre className="command subject plain-text">
        <span aria-hidden="true">$ </span>
        <Visible text={process.command} />
      </pre>
      <div className="row">
        <State process={process} />
        <span className="muted">
          {process.pid != null && process.state === "running" && `pid ${process.pid}, `}
          in {process.cwd}, {ended === null ? `for ${formatAge(process.started, now)}` : `ended ${formatAge(ended, now)} ago`}
        </span>
        <span className="mono">{listPorts(process)}</span>
        <Link to={pathTo("tasks", process.sessionId)}>Show the task</Link>
        {mayOperate && process.state === "running" && (
          <button type="button" className="danger end" disabled={action.busy} onClick={stop}>
            {action.busy ? "Stopping …" : "Stop"}
          </button>
        )}
      </div>
      {process.changed != null && <p><Visible text={process.changed} /></p>}
      {action.error !== null && <Failure error={action.error} />}
      {problem !== null && <p className="bad">✗ {problem}</p>}
      {text === "" ? <p className="muted">No output yet.</p> : <Output text={text} dropped={dropped} />}
    </>
  );
}

interface Live {
  text: string;
  dropped: number;
  problem: string | null;
}

/** The output from its beginning, and what comes while the process runs. */
function useLiveOutput(process: string): Live {
  const [live, setLive] = useState<Live>({ text: "", dropped: 0, problem: null });
  useEffect(() => {
    const controller = new AbortController();
    let timer: number | undefined;
    const look = async (after: number): Promise<void> => {
      let next = after;
      let goesOn = true;
      try {
        const page = await request("GET /api/processes/{process}/output", { params: { process }, query: { after }, signal: controller.signal });
        next = page.next;
        goesOn = page.running || next > after;
        setLive((before) => append(before, page.text));
      } catch (error) {
        if (controller.signal.aborted) return;
        setLive((before) => ({ ...before, problem: describeFailure(error) }));
      }
      if (goesOn && !controller.signal.aborted) timer = window.setTimeout(() => void look(next), next > after ? 100 : EVERY_MS);
    };
    void look(0);
    return () => {
      controller.abort();
      window.clearTimeout(timer);
    };
  }, [process]);
  return live;
}

function append(before: Live, piece: string): Live {
  if (piece === "") return before.problem === null ? before : { ...before, problem: null };
  const text = before.text + piece;
  const cut = Math.max(0, text.length - MAX_KEPT);
  return { text: text.slice(cut), dropped: before.dropped + cut, problem: null };
}
