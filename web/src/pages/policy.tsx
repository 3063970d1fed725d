/** The policy explained: the parts of a command or call with their rules, and what another rule would change. */

import { useState } from "react";
import { type ModeName, request } from "../api/client";
import type { ChangedDecision, Decision, PolicyAnswer, PolicyQuestion, RuleEffect } from "../api/types";
import { Code } from "../parts/code";
import { DecisionView } from "../parts/decision";
import { Dialog } from "../parts/dialog";
import { Choice, CodeArea, Form, WorkspaceSelect } from "../parts/fields";
import { listModes } from "../parts/modes";
import { CopyButton } from "../parts/split";
import { type Column, Table } from "../parts/table";
import { Failure, Loaded } from "../parts/states";
import { Visible } from "../parts/text";
import { Link, pathTo } from "../router";
import { useAction } from "../state/action";
import { useConsole } from "../state/console";
import { useDelayed, useResource, useRoute } from "../state/resource";
import { formatPlural } from "../text/format";
import { nameVerdict } from "../text/permission";
import { parseArgs } from "../text/schema";

const MODES: readonly ModeName[] = ["ask", "plan", "auto", "full"];
const DAYS = ["7", "30", "90"].map((days) => [days, `last ${days} days`] as const);

interface Draft {
  verdict: "allow" | "ask" | "deny";
  pattern: string;
  tool: string;
  id: string;
  because: string;
}

export default function PolicyPage() {
  const { info, announce } = useConsole();
  const [workspace, setWorkspace] = useState(info.workspaces[0] ?? "");
  const [mode, setMode] = useState<ModeName | "">("");
  const [tool, setTool] = useState("");
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [asked, setAsked] = useState<{ question: PolicyQuestion; answer: PolicyAnswer } | null>(null);
  const [draft, setDraft] = useState<Draft | null>(null);
  const action = useAction();
  const tools = useRoute("GET /api/tools", { query: { workspace } });
  const isCall = tool !== "";
  const names = (tools.data?.tools ?? []).map((one) => one.name);
  const ask = () => {
    const read = isCall ? parseArgs(text.trim() === "" ? "{}" : text) : { args: {} };
    setProblem("problem" in read ? read.problem : null);
    if ("problem" in read) return;
    const question: PolicyQuestion = { ...(isCall ? { tool, args: read.args } : { command: text }), mode: mode === "" ? null : mode, workspace };
    action.run(async () => {
      const answer = await request("POST /api/policy/explain", { body: question });
      setAsked({ question, answer });
      announce(`${nameVerdict(answer.decision.decision)}: ${answer.decision.reason}`);
    });
  };
  const askedTool = asked?.question.tool ?? "exec";
  // A call without parts is judged as a whole.
  const whole = asked !== null && (asked.answer.decision.parts ?? []).length === 0 ? asked.answer.decision : null;
  return (
    <div className="page">
      <header className="page-head">
        <h1>Policy</h1>
        <button type="button" className="end" onClick={() => setDraft(draftFor(askedTool, whole))}>Add rule…</button>
      </header>
      <p className="muted">Ask what would happen. Nothing runs.</p>
      <Form ready={!action.busy && (isCall || text.trim() !== "")} onSend={ask}>
        <div className="filters">
          <Choice label="Command or call" value={tool} all="a command" options={names.filter((one) => one !== "exec")} onChange={setTool} />
          <Choice label="Mode" value={mode} all="the mode that is set" options={listModes(MODES)} onChange={setMode} />
          <WorkspaceSelect value={workspace} onChange={setWorkspace} />
        </div>
        <CodeArea
          aria-label={isCall ? "Arguments as JSON" : "Command"}
          placeholder={isCall ? '{"path": ".env"}' : "cd api && rm -rf build | tee log"}
          value={text}
          onChange={setText}
        />
        {problem !== null && <p className="bad">✗ {problem}</p>}
        <p className="row">
          <button type="submit" className="primary" disabled={action.busy || (!isCall && text.trim() === "")}>Explain</button>
          <span className="note">ctrl+enter</span>
        </p>
      </Form>
      {action.error !== null && <Failure error={action.error} />}
      {asked !== null && (
        <section className="stack" aria-label="Decision">
          <DecisionView
            decision={asked.answer.decision}
            mode={asked.answer.mode}
            facts={asked.answer.facts}
            onRule={(part) => setDraft(draftFor(askedTool, part))}
          />
          <details>
            <summary className="note">As in the terminal</summary>
            <pre className="output"><Visible text={asked.answer.text.join("\n")} ends={false} /></pre>
          </details>
        </section>
      )}
      {draft !== null && <RuleDialog first={draft} workspace={workspace} tools={names} onClose={() => setDraft(null)} />}
    </div>
  );
}

/** The rule that a person most likely wants: the first words of the command, or its path. */
function draftFor(tool: string, part: Pick<Decision, "subject" | "decision"> | null): Draft {
  const words = (part?.subject ?? "").trim().split(/\s+/);
  const plain = words.slice(0, 2).filter((word, place) => place === 0 || /^[\w.:-]+$/.test(word));
  const pattern = tool === "exec" ? plain.filter((word) => !word.startsWith("-")).join(" ") : (part?.subject ?? "");
  const id = `my-${(tool === "exec" ? pattern : tool).replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "")}`.replace(/-$/, "-rule");
  return { verdict: part?.decision === "confirm" ? "allow" : "ask", pattern, tool, id: id.slice(0, 64), because: "" };
}

interface RuleProps {
  first: Draft;
  workspace: string;
  tools: readonly string[];
  onClose: () => void;
}

/** Tries the rule on the calls of the last days while it is written. It is not stored: a person puts it into a file. */
function RuleDialog({ first, workspace, tools, onClose }: RuleProps) {
  const [draft, setDraft] = useState(first);
  const [days, setDays] = useState(7);
  const { verdict, pattern, tool, id, because } = draft;
  const rule = { id, [verdict]: pattern, ...(tool !== "exec" && { tool }), ...(because !== "" && { because }) };
  const body = useDelayed(JSON.stringify({ rule, workspace, days }), 400);
  const effect = useResource(pattern === "" ? null : body, (signal) =>
    request("POST /api/policy/try-rule", { body: JSON.parse(body) as { rule: Record<string, unknown> }, signal }),
  );
  const field = (key: "pattern" | "id" | "because", label: string) => (
    <label className="stack">
      {label}
      <input type="text" className="mono" spellCheck={false} value={draft[key]} onChange={(event) => setDraft({ ...draft, [key]: event.target.value })} />
    </label>
  );
  return (
    <Dialog title="Add rule" shape="sheet" onClose={onClose}>
      <div className="filters">
        <Choice label="Verdict" value={verdict} options={["allow", "ask", "deny"]} onChange={(value) => setDraft({ ...draft, verdict: value })} />
        <Choice label="Tool" value={tool} options={Array.from(new Set(["exec", "*", ...tools]))} onChange={(value) => setDraft({ ...draft, tool: value })} />
        <Choice label="Days" value={String(days)} options={DAYS} onChange={(value) => setDays(Number(value))} />
      </div>
      {field("pattern", tool === "exec" ? "Commands that begin with these words" : "Paths by a pattern, such as docs/**")}
      {field("id", "Name of the rule")}
      {field("because", "Reason that the decision shows")}
      {pattern === "" ? <p className="muted">Fill in the pattern to see what it would change.</p> : <Loaded from={effect}>{(data) => <EffectView effect={data} days={days} />}</Loaded>}
    </Dialog>
  );
}

function EffectView({ effect, days }: { effect: RuleEffect; days: number }) {
  const { different } = effect;
  return (
    <>
      <Code text={effect.toml.trimEnd()} language="ini" />
      <p className="row">
        <CopyButton text={effect.toml} />
        <span className="note">Put it into your settings file. <code>handrail config</code> names it.</span>
      </p>
      <h3>Last {days} days: {different.length.toLocaleString("en")} of {formatPlural(effect.calls, "call")} would differ</h3>
      {different.length > 0 && <Table columns={DIFFERENCES} rows={different.slice(0, 200)} id={(one) => `${one.task} ${one.toolCallId}`} />}
      {different.length > 200 && <p className="note">The first 200 are shown.</p>}
    </>
  );
}

const DIFFERENCES: readonly Column<ChangedDecision>[] = [
  ["Call", "title", (one) => <Call {...one} />],
  ["Was", "nowrap", ({ before }) => nameVerdict(before)],
  ["Would be", "nowrap", ({ after }) => <b>{nameVerdict(after)}</b>],
];

function Call({ task, toolCallId, tool, subject }: ChangedDecision) {
  return (
    <>
      <Link to={pathTo("tasks", task, "calls", toolCallId)}>{tool}</Link>{" "}
      <code className="subject"><Visible text={subject} /></code>
    </>
  );
}
