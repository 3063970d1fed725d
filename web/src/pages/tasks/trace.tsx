/** Where the time of the turns of a task went: spans of model, queue, person, policy, sandbox and tool. */

import { useState } from "react";
import type { Trace, TraceSpan } from "../../api/types";
import { Choice } from "../../parts/fields";
import { type Column, Table } from "../../parts/table";
import { Empty, Loaded } from "../../parts/states";
import { Visible } from "../../parts/text";
import { Link, pathTo } from "../../router";
import { useRoute } from "../../state/resource";
import { formatSpan } from "../../text/format";
import "./replay.css";

const PHASES: readonly TraceSpan["phase"][] = ["model", "queue", "person", "policy", "sandbox", "tool"];
const FIRST_SPANS = 300;

export default function TaskTrace({ task }: { task: string }) {
  const traces = useRoute("GET /api/tasks/{task}/trace", { params: { task } });
  const [chosen, setChosen] = useState<number | null>(null);
  return (
    <div className="page">
      <p><Link to={pathTo("tasks", task)}>‹ Conversation</Link></p>
      <header className="page-head">
        <h1>Trace</h1>
        <button type="button" className="end" onClick={traces.reload}>Reload</button>
      </header>
      <Loaded from={traces}>
        {({ traces: turns }) => {
          const turn = turns.find((one) => one.turn === chosen) ?? turns.at(-1);
          if (turn === undefined) return <Empty>No turn yet.</Empty>;
          const options = turns.map((one, place) => [String(one.turn), `${place + 1}. ${one.prompt.slice(0, 60)}`] as const);
          return (
            <>
              {turns.length > 1 && <Choice label="Turn" value={String(turn.turn)} options={options} onChange={(value) => setChosen(Number(value))} />}
              <TurnTrace key={turn.turn} task={task} trace={turn} />
            </>
          );
        }}
      </Loaded>
    </div>
  );
}

function TurnTrace({ task, trace }: { task: string; trace: Trace }) {
  const [shown, setShown] = useState(FIRST_SPANS);
  const sums = PHASES.map((phase) => {
    const spans = trace.spans.filter((one) => one.phase === phase);
    return { phase, count: spans.length, total: spans.reduce((sum, one) => sum + one.durationMs, 0) };
  }).filter((one) => one.count > 0);
  return (
    <>
      <p className="plain-text"><Visible text={trace.prompt.slice(0, 500)} /></p>
      <p className="row">
        <b>{formatSpan(trace.durationMs)}</b>
        {sums.map(({ phase, count, total }) => (
          <span key={phase} className="row legend">
            <span className={`span-mark ${phase}`} aria-hidden="true" /> {phase} {formatSpan(total)}
            {count > 1 && <span className="muted">in {count}</span>}
          </span>
        ))}
      </p>
      <Table name="trace" columns={listColumns(task, trace.durationMs)} rows={trace.spans.slice(0, shown)} id={(span) => trace.spans.indexOf(span)} />
      {trace.spans.length > shown && (
        <button type="button" className="quiet" onClick={() => setShown(shown + 1000)}>
          Show more of {trace.spans.length.toLocaleString("en")}
        </button>
      )}
      <p className="note">Calls of one reply run side by side, so the sums may be longer than the turn. The rest is handrail's own work.</p>
    </>
  );
}

function listColumns(task: string, total: number): readonly Column<TraceSpan>[] {
  return [
    ["Phase", "nowrap", ({ phase }) => <><span className={`span-mark ${phase}`} aria-hidden="true" /> {phase}</>],
    ["What", "nowrap trace-name", (span) => <Name task={task} span={span} />],
    ["After", "numeric wide-only muted", (span) => formatSpan(span.startMs)],
    ["Took", "numeric", (span) => formatSpan(span.durationMs)],
    ["In the turn", "title", (span) => <Bar span={span} total={total} />],
  ];
}

function Name({ task, span: { name, toolCallId } }: { task: string; span: TraceSpan }) {
  const text = <Visible text={name} />;
  return toolCallId == null ? text : <Link to={pathTo("tasks", task, "calls", toolCallId)}>{text}</Link>;
}

function Bar({ span, total }: { span: TraceSpan; total: number }) {
  const part = (value: number) => `${(100 * Math.min(1, Math.max(0, value / Math.max(total, 1)))).toFixed(3)}%`;
  return (
    <svg className="trace-bar" width="100%" height="14" aria-hidden="true">
      <rect className={`bar ${span.phase}`} x={part(span.startMs)} y="2" width={part(span.durationMs)} height="10" rx="2" />
      {/* A short span is seen too, also at the end. */}
      <rect className={`bar ${span.phase}`} x={part(Math.min(span.startMs, total * 0.993))} y="2" width="2" height="10" />
    </svg>
  );
}
