/** A call as a card: a line with its outcome, which opens to its arguments and result. */

import { memo, type ReactNode } from "react";
import { addressOf, requestText } from "../../api/client";
import type { Answer, Change, Network } from "../../api/types";
import { Code } from "../../parts/code";
import { Counts, DiffView } from "../../parts/diff";
import { Output } from "../../parts/output";
import { useNow } from "../../parts/states";
import { Visible } from "../../parts/text";
import { Link, pathTo } from "../../router";
import type { Call, CallState } from "../../state/conversation";
import { useResource } from "../../state/resource";
import { describeCall } from "../../text/calls";
import { formatDuration } from "../../text/format";
import { findLanguage } from "../../text/languages";

const SIGNS: Readonly<Record<CallState, readonly [string, string, string]>> = {
  queued: ["○", "muted", "queued"],
  running: ["●", "accent", "running"],
  waiting: ["!", "warn", "waits for approval"],
  asking: ["!", "warn", "waits for a reply"],
  ok: ["✓", "ok", "ok"],
  failed: ["✗", "bad", "failed"],
  denied: ["⊘", "muted", "denied"],
  interrupted: ["✗", "warn", "interrupted"],
};
/** The tool succeeded, the command did not. */
const NONZERO = ["✗", "warn", "ended with an error"] as const;
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
  /** Whether its request was answered in this window. */
  mine: boolean;
  onToggle: (open: boolean) => void;
}

export const CallCard = memo(function CallCard({ task, call, open, mine, onToggle }: Props) {
  const [sign, colour, word] = hasFailedExit(call) ? NONZERO : SIGNS[call.state];
  const undo = call.result?.meta.undo ?? call.change?.number ?? null;
  return (
    <div className={call.state === "waiting" || call.state === "asking" ? "card waits" : "card"}>
      <div className="card-head">
        <button type="button" className="card-toggle" aria-expanded={open} onClick={() => onToggle(!open)}>
          <span className="fold-sign" aria-hidden="true">
            {open ? "▾" : "▸"}
          </span>
          <span className={`card-sign ${colour}`} aria-hidden="true">
            {sign}
          </span>
          <span className="only-read">{word}: </span>
          <span className="card-name">
            {call.name}
            {call.server !== null && ` (${call.server})`}
          </span>
          <span className="card-subject">
            <Visible text={describeCall(call.name, getArguments(call))} />
          </span>
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
      {open && <CardBody task={task} call={call} mine={mine} />}
    </div>
  );
});

function Outcome({ call }: { call: Call }) {
  const { result, state } = call;
  if (state === "running") return <RunningTime started={call.started} />;
  if (result === null) return <span>{SIGNS[state][2]}</span>;
  const changes = call.change?.changes ?? [];
  const added = changes.reduce((sum, one) => sum + (one.added ?? 0), 0);
  const removed = changes.reduce((sum, one) => sum + (one.removed ?? 0), 0);
  return (
    <>
      {changes.length > 0 && <Counts added={added} removed={removed} />}
      <span className="card-summary">
        <Visible text={result.ok ? shorten(result.summary) : state === "denied" ? "denied" : (result.error?.code ?? "failed")} />
      </span>
      <span>{formatDuration(result.duration_ms)}</span>
    </>
  );
}

function shorten(text: string): string {
  return text.length > 90 ? `${text.slice(0, 88)}…` : text;
}

function RunningTime({ started }: { started: string }) {
  const now = useNow(1000);
  return <span>{formatDuration(Math.max(0, now - Date.parse(started)))}</span>;
}

function CardBody({ task, call, mine }: { task: string; call: Call; mine: boolean }) {
  return (
    <div className="card-body">
      {call.purpose !== null && call.purpose !== "" && (
        <p className="note">
          The model says: <Visible text={call.purpose} />
        </p>
      )}
      <Arguments call={call} />
      {call.request?.edited === true && <p className="note warn">! A person edited the command.</p>}
      {call.answer !== null && <AnswerLine answer={call.answer} mine={mine} />}
      {call.question !== null && <p>{call.question.question}</p>}
      <ResultView task={task} call={call} />
      {call.network.length > 0 && <NetworkList network={call.network} />}
      {call.change !== null && readDiff(call) === null && <ChangeRows changes={call.change.changes} />}
      <p className="card-links">
        {isCommand(call) && call.result !== null && (
          <a href={addressOf("GET /api/tasks/{task}/output/{call}", { params: { task, call: call.id } })} target="_blank" rel="noopener">
            raw
          </a>
        )}
        <Link to={pathTo("tasks", task, "calls", call.id)}>link</Link>
        <Link to={`/audit/${encodeURIComponent(call.id)}`}>audit</Link>
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

function AnswerLine({ answer, mine }: { answer: Answer; mine: boolean }) {
  const by = answer.by ?? null;
  const who = by === "preview" ? "Its preview changed nothing" : by === "grant" ? "A grant covers it" : by === "expiry" ? "The request expired" : null;
  return (
    <p className="note">
      {who ?? (mine ? "You answered" : "Answered")}: {ANSWERS[answer.kind]}
      {typeof answer.reason === "string" && answer.reason !== "" && (
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
  if (args === null) return null;
  if (typeof args.command === "string") {
    return (
      <pre className="command">
        <span aria-hidden="true">$ </span>
        <Visible text={args.command} />
      </pre>
    );
  }
  if (readDiff(call) !== null || Object.keys(args).length === 0) return null;
  const shown = Object.keys(args).length === 1 && typeof args.path === "string" ? null : JSON.stringify(args, null, 2);
  return (
    shown !== null && (
      <details>
        <summary className="note">Arguments</summary>
        <Code text={shown} language="json" />
      </details>
    )
  );
}

function ResultView({ task, call }: { task: string; call: Call }) {
  const { result } = call;
  if (result === null) return <Output text={call.output} live dropped={call.dropped} />;
  const diff = readDiff(call);
  return (
    <>
      {!result.ok && (
        <p className="bad">
          <Visible text={result.summary} />
        </p>
      )}
      {result.warnings.map((warning) => (
        <p key={warning} className="note warn">
          ! <Visible text={warning} />
        </p>
      ))}
      {diff !== null && <DiffView text={diff} />}
      {diff === null && <Content task={task} call={call} content={result.content} raw={result.meta.raw ?? null} />}
    </>
  );
}

function Content({ task, call, content, raw }: { task: string; call: Call; content: string; raw: string | null }) {
  const path = asRecord(call.args)?.path;
  if (raw !== null) return <RawOutput task={task} call={call.id} otherwise={content} />;
  if (call.name === "read" && typeof path === "string") {
    const language = findLanguage(path);
    const lines = content.split("\n").length;
    if (language !== null && lines <= 400) return <Code text={content} language={language} />;
  }
  const isSame = call.result?.ok === false && content.trim() === call.result.summary.trim();
  return isSame ? null : <Output text={content} />;
}

/** The output as it was printed, with its colours. The model's text had none. */
function RawOutput({ task, call, otherwise }: { task: string; call: string; otherwise: string }): ReactNode {
  const raw = useResource(`raw ${call}`, async (signal) => {
    const text = await requestText("GET /api/tasks/{task}/output/{call}", { params: { task, call }, signal });
    return text.slice(0, MAX_RAW);
  });
  return <Output text={raw.data ?? otherwise} />;
}

function NetworkList({ network }: { network: readonly Network[] }) {
  return (
    <ul className="plain-list">
      {network.map((one) => (
        <li key={one.eventId} className={one.allowed ? "note" : "note warn"}>
          {one.allowed ? "connected to " : "! blocked: "}
          <Visible text={`${one.host}:${one.port}`} /> ({one.reason})
        </li>
      ))}
    </ul>
  );
}

function ChangeRows({ changes }: { changes: readonly Change[] }) {
  return (
    <ul className="plain-list">
      {changes.map((change) => (
        <li key={change.path}>
          <span className="path">
            <Visible text={change.path} />
          </span>{" "}
          <span className="muted">{change.action}</span> <Counts added={change.added ?? 0} removed={change.removed ?? 0} />
        </li>
      ))}
    </ul>
  );
}

function hasFailedExit(call: Call): boolean {
  const code = asRecord(call.result?.data)?.exitCode;
  return call.state === "ok" && typeof code === "number" && code !== 0;
}

function readDiff(call: Call): string | null {
  const diff = asRecord(call.result?.data)?.diff;
  return typeof diff === "string" && diff !== "" ? diff : null;
}

function asRecord(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
}
