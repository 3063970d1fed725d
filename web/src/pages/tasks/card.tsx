/** A call as a card: a line with its outcome, which opens to its arguments and result. */

import { memo } from "react";
import { addressOf, requestText } from "../../api/client";
import type { Answer, Network, ToolResult } from "../../api/types";
import { Code } from "../../parts/code";
import { Counts, DiffView } from "../../parts/diff";
import { Output } from "../../parts/output";
import { ChangeTable } from "../../parts/change_table";
import { Sign } from "../../parts/signs";
import { useNow } from "../../parts/states";
import { Visible, Warnings } from "../../parts/text";
import { Link, pathTo } from "../../router";
import { answeredHere } from "../../state/answered";
import type { Call, CallState } from "../../state/conversation";
import { useResource } from "../../state/resource";
import { describeCall } from "../../text/calls";
import { countLines } from "../../text/diff";
import { formatDuration, shorten } from "../../text/format";
import { asRecord, isString } from "../../text/json";
import { findLanguage } from "../../text/languages";

const WORDS: Partial<Record<CallState, string>> = { waiting: "waits for approval", asking: "waits for a reply" };
const SHORT_DIFF = 40;
const MAX_RAW = 2_000_000;

/** Whether a card begins unfolded: running output, failures, and short diffs. */
export function isOpenAtFirst(call: Call): boolean {
  if (call.state === "running") return call.output !== "";
  if (call.state === "failed") return true;
  const diff = readDiff(call);
  return diff !== null && call.state === "ok" && diff.split("\n").length <= SHORT_DIFF;
}

interface Props {
  task: string;
  call: Call;
  open: boolean;
  onToggle: (open: boolean) => void;
}

export const CallCard = memo(function CallCard({ task, call, open, onToggle }: Props) {
  // The tool may succeed although the command does not.
  const [sign, word] = hasFailedExit(call) ? (["interrupted", "ended with an error"] as const) : [call.state, describeState(call.state)];
  const undo = call.result?.meta.undo ?? call.change?.number ?? null;
  return (
    <div className={call.state === "waiting" || call.state === "asking" ? "card waits" : "card"}>
      <div className="card-head">
        <button type="button" className="card-toggle" aria-expanded={open} onClick={() => onToggle(!open)}>
          <span className="fold-sign" aria-hidden="true">{open ? "▾" : "▸"}</span>
          <Sign name={sign} classes="card-sign" />
          <span className="only-read">{word}: </span>
          <span className="card-name">
            {call.name}
            {call.server !== null && ` (${call.server})`}
          </span>
          <Visible as="span" className="card-subject" text={describeCall(call.name, getArguments(call))} />
        </button>
        <span className="card-facts">
          <Outcome call={call} />
          {undo !== null && (
            <Link to={`${pathTo("changes", undo)}?task=${encodeURIComponent(task)}`} title="Show or undo this change">
              undo {undo} ↶
            </Link>
          )}
        </span>
      </div>
      {open && <CardBody task={task} call={call} />}
    </div>
  );
});

function Outcome({ call }: { call: Call }) {
  const { result, state } = call;
  if (state === "running") return <RunningTime started={call.started} />;
  if (result === null) return <span>{describeState(state)}</span>;
  const changes = call.change?.changes ?? [];
  return (
    <>
      {changes.length > 0 && <Counts {...countLines(changes)} />}
      <Visible as="span" className="card-summary" text={result.ok ? shorten(result.summary, 90) : state === "denied" ? "denied" : (result.error?.code ?? "failed")} />
      <span>{formatDuration(result.duration_ms)}</span>
    </>
  );
}

function describeState(state: CallState): string {
  return WORDS[state] ?? state;
}

function RunningTime({ started }: { started: string }) {
  const now = useNow(1000);
  return <span>{formatDuration(Math.max(0, now - Date.parse(started)))}</span>;
}

function CardBody({ task, call }: { task: string; call: Call }) {
  return (
    <div className="card-body">
      {call.purpose !== null && call.purpose !== "" && (
        <p className="note">
          The model says: <Visible text={call.purpose} />
        </p>
      )}
      <Arguments call={call} />
      {call.request?.edited === true && <p className="note warn">! A person edited the command.</p>}
      {call.answer !== null && <AnswerLine answer={call.answer} mine={answeredHere.has(call.request?.id ?? "")} />}
      {call.question !== null && <p>{call.question.question}</p>}
      <ResultView task={task} call={call} />
      {call.network.map((one) => (
        <p key={one.eventId} className={one.allowed ? "note" : "note warn"}>
          <Connection network={one} />
        </p>
      ))}
      {call.change !== null && readDiff(call) === null && <ChangeTable changes={call.change.changes} />}
      <p className="card-links">
        {isCommand(call) && call.result !== null && (
          <a href={addressOf("GET /api/tasks/{task}/output/{call}", { params: { task, call: call.id } })} target="_blank" rel="noopener">
            raw
          </a>
        )}
        <Link to={pathTo("tasks", task, "calls", call.id)}>link</Link>
        <Link to={pathTo("audit", call.id)}>audit</Link>
      </p>
    </div>
  );
}

const ANSWERS: Readonly<Record<Answer["kind"], string>> = {
  once: "approved once",
  session: "approved, also for this session",
  workspace: "approved, also for this workspace",
  edits: "approved, with plain edits in this session",
  output: "only the output was kept",
  deny: "denied",
};

const ANSWERED_BY = { preview: "Its preview changed nothing", grant: "A grant covers it", expiry: "The request expired" } as const;

function AnswerLine({ answer, mine }: { answer: Answer; mine: boolean }) {
  const who = answer.by == null ? (mine ? "You answered" : "Answered") : ANSWERED_BY[answer.by];
  return (
    <p className="note">
      {who}: {ANSWERS[answer.kind]}
      {answer.reason != null && answer.reason !== "" && (
        <>
          , because: <Visible text={answer.reason} />
        </>
      )}
    </p>
  );
}

function isCommand(call: Call): boolean {
  return call.name === "exec" || call.name === "process" || (call.result?.artifacts.commands_run ?? []).length > 0;
}

/** As the model gave them, or with the command that a person put in its place. */
function getArguments(call: Call): unknown {
  const { request } = call;
  if (request?.edited !== true || request.command == null) return call.args;
  return { ...asRecord(call.args), command: request.command };
}

/** What a card does not say in its first line already. */
function Arguments({ call }: { call: Call }) {
  const args = asRecord(getArguments(call));
  if (typeof args.command === "string") {
    return (
      <pre className="command">
        <span aria-hidden="true">$ </span>
        <Visible text={args.command} />
      </pre>
    );
  }
  const names = Object.keys(args);
  if (readDiff(call) !== null || names.length === 0 || (names.length === 1 && isString(args.path))) return null;
  return (
    <details>
      <summary className="note">Arguments</summary>
      <Code text={JSON.stringify(args, null, 2)} language="json" />
    </details>
  );
}

function ResultView({ task, call }: { task: string; call: Call }) {
  const { result } = call;
  if (result === null) return <Output text={call.output} live dropped={call.dropped} />;
  const diff = readDiff(call);
  return (
    <>
      {!result.ok && <Visible as="p" className="bad" text={result.summary} />}
      <Warnings className="note warn" texts={result.warnings} />
      {diff === null ? <Content task={task} call={call} result={result} /> : <DiffView text={diff} />}
    </>
  );
}

function Content({ task, call, result }: { task: string; call: Call; result: ToolResult }) {
  const { content, meta } = result;
  // The output as it was printed, with its colours. The model's text had none.
  const raw = useResource(meta.raw == null ? null : `raw ${call.id}`, async (signal) => {
    const text = await requestText("GET /api/tasks/{task}/output/{call}", { params: { task, call: call.id }, signal });
    return text.slice(0, MAX_RAW);
  });
  const { path } = asRecord(call.args);
  const language = call.name === "read" && isString(path) ? findLanguage(path) : null;
  if (language !== null && content.split("\n").length <= 400) return <Code text={content} language={language} />;
  const isSaid = !result.ok && meta.raw == null && content.trim() === result.summary.trim();
  return isSaid ? null : <Output text={raw.data ?? content} />;
}

export function Connection({ network: { host, port, allowed, reason } }: { network: Network }) {
  return (
    <>
      {allowed ? "connected to " : "! blocked: "}
      <Visible text={`${host}:${port}`} /> ({reason})
    </>
  );
}

function hasFailedExit(call: Call): boolean {
  const code = asRecord(call.result?.data).exitCode;
  return call.state === "ok" && typeof code === "number" && code !== 0;
}

function readDiff(call: Call): string | null {
  const { diff } = asRecord(call.result?.data);
  return typeof diff === "string" && diff !== "" ? diff : null;
}
