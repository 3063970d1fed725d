/** The tool palette: choose a tool, fill in its arguments, see what the policy and the preview say, run it. */

import { useEffect, useRef, useState } from "react";
import { request } from "../api/client";
import type { CallCheck, CallOutcome, PolicyAnswer, ToolDescription } from "../api/types";
import { Code } from "../parts/code";
import { DecisionView } from "../parts/decision";
import { DiffView } from "../parts/diff";
import { Output } from "../parts/output";
import "../parts/permission/permission.css";
import { RequestView } from "../parts/permission/request_view";
import { SchemaForm } from "../parts/schema_form";
import { CopyButton, WorkspaceSelect } from "../parts/split";
import { Empty, Failure, Loaded } from "../parts/states";
import { Tabs } from "../parts/tabs";
import { Link, navigate, pathTo } from "../router";
import { useAction } from "../state/action";
import { useConsole, useMayOperate } from "../state/console";
import { type Call, makeCall } from "../state/conversation";
import { useListKeys } from "../state/focus";
import { useResource } from "../state/resource";
import { type Args, checkArgs, listFields, parseArgs, type Problems, readProblems, startArgs, writeCurl, writePython } from "../text/schema";
import type { PageProps } from "./index";
import { CallCard } from "./tasks/card";
import "./tasks/tasks.css";
import "./tools.css";

export default function ToolsPage({ parts }: PageProps) {
  const { info } = useConsole();
  const [workspace, setWorkspace] = useState(info.workspaces[0] ?? "");
  const tools = useResource(`tools ${workspace}`, (signal) => request("GET /api/tools", { query: { workspace }, signal }));
  const name = parts[0] ?? null;
  return (
    <div className="page">
      <header className="page-head">
        <h1>Tools</h1>
        <WorkspaceSelect value={workspace} onChange={setWorkspace} />
      </header>
      <Loaded from={tools}>
        {(data) => {
          const tool = data.tools.find((one) => one.name === name);
          return (
            <>
              <Palette tools={data.tools} current={name} />
              {name !== null && tool === undefined && <Empty>There is no tool {name} in this workspace.</Empty>}
              {tool !== undefined && <ToolPanel key={`${workspace} ${tool.name}`} tool={tool} workspace={workspace} />}
            </>
          );
        }}
      </Loaded>
    </div>
  );
}

function Palette({ tools, current }: { tools: readonly ToolDescription[]; current: string | null }) {
  const [text, setText] = useState("");
  const filter = useRef<HTMLInputElement>(null);
  useListKeys(".palette .row-link");
  useEffect(() => {
    if (current === null) filter.current?.focus();
  }, [current]);
  const wanted = text.toLowerCase();
  const found = tools.filter((one) => `${one.name} ${one.title} ${current === null ? one.description : ""}`.toLowerCase().includes(wanted));
  return (
    <div className={current === null ? "palette" : "palette chosen"}>
      <input
        ref={filter}
        type="search"
        aria-label="Find a tool"
        placeholder="Find a tool"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && found[0] !== undefined) navigate(pathTo("tools", found[0].name));
          if (event.key === "ArrowDown") document.querySelector<HTMLElement>(".palette .row-link")?.focus();
        }}
      />
      <ul className="plain-list" aria-label="Tools">
        {found.map((one) => (
          <li key={one.name}>
            <Link to={pathTo("tools", one.name)} className="row-link" aria-current={one.name === current ? "true" : undefined}>
              <b className="mono">{one.name}</b>
              {current === null && <span className="muted clip">{one.description}</span>}
            </Link>
          </li>
        ))}
      </ul>
      {found.length === 0 && <Empty>No tool fits.</Empty>}
    </div>
  );
}

type Shown =
  | { kind: "policy"; answer: PolicyAnswer }
  | { kind: "check"; check: CallCheck }
  | { kind: "run"; outcome: CallOutcome; args: Args };

function ToolPanel({ tool, workspace }: { tool: ToolDescription; workspace: string }) {
  const { info, announce } = useConsole();
  const mayOperate = useMayOperate();
  const fields = listFields(tool.inputSchema);
  const [args, setArgs] = useState<Args>(() => startArgs(fields));
  const [problems, setProblems] = useState<Problems>(new Map());
  const [shown, setShown] = useState<Shown | null>(null);
  const [broken, setBroken] = useState<string | null>(null);
  const action = useAction();
  const paths = usePaths(workspace);
  const call = { name: tool.name, args, workspace };
  const change = (fresh: Args) => {
    setArgs(fresh);
    setProblems(new Map());
    setShown(null);
  };
  /** Nothing is sent while a field has a problem. */
  const send = (work: () => Promise<Shown>) => {
    const found = checkArgs(tool.inputSchema, args);
    setProblems(found);
    setShown(null);
    if (found.size > 0) {
      announce(`${found.size} problems. Nothing was sent.`);
      window.requestAnimationFrame(() => document.querySelector<HTMLElement>(".schema-form [aria-invalid=true]")?.focus());
      return;
    }
    action.run(async () => {
      const answer = await work();
      if (answer.kind === "check" && answer.check.problems.length > 0) setProblems(readProblems(answer.check.problems));
      else setShown(answer);
      announce("The result is below the buttons.");
    });
  };
  const explain = () => send(async () => ({ kind: "policy", answer: await request("POST /api/policy/explain", { body: { tool: tool.name, args, workspace } }) }));
  const check = () => send(async () => ({ kind: "check", check: await request("POST /api/call/check", { body: call }) }));
  const run = () => send(async () => ({ kind: "run", outcome: await request("POST /api/call", { body: call }), args }));
  const known = new Set(fields.map((field) => field.name));
  const others = Array.from(problems).filter(([name]) => !known.has(name));
  const off = action.busy || broken !== null;
  return (
    <section className="stack" aria-labelledby="tool-heading">
      <h2 id="tool-heading" className="row">
        {tool.title} <span className="tag">{tool.category}</span>
        {tool.permissions.map((one) => <span key={one} className="tag">{one}</span>)}
      </h2>
      <p className="muted">{tool.description}</p>
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (mayOperate) check();
          else explain();
        }}
      >
        <Editor tool={tool} args={args} problems={problems} paths={paths} workspace={workspace} onChange={change} onBroken={setBroken} />
        {others.map(([name, problem]) => (
          <p key={name} className="bad plain-text" role="alert">✗ {name === "" ? problem : `${name}: ${problem}`}</p>
        ))}
        <div className="row">
          <button type="button" disabled={off} onClick={explain}>Check policy</button>
          {mayOperate && <button type="submit" className="primary" disabled={off}>Try</button>}
          {mayOperate && info.directCalls && <button type="button" disabled={off} onClick={run}>Run</button>}
          <span className="note" role="status">
            {action.busy ? "Waiting for the server …" : mayOperate ? "Try changes nothing in your files." : "You may look, not run."}
          </span>
        </div>
      </form>
      {action.error !== null && <Failure error={action.error} />}
      {shown !== null && <Result shown={shown} name={tool.name} />}
    </section>
  );
}

/** Files to offer: those that were changed last. */
function usePaths(workspace: string): readonly string[] {
  const changes = useResource(`offered ${workspace}`, (signal) => request("GET /api/changes", { query: { workspace, limit: 50 }, signal }));
  const listed = changes.data?.changes.flatMap((one) => one.changes.filter((path) => path.action !== "deleted").map((path) => path.path));
  return Array.from(new Set(listed ?? []));
}

interface EditorProps {
  tool: ToolDescription;
  args: Args;
  problems: Problems;
  paths: readonly string[];
  workspace: string;
  onChange: (args: Args) => void;
  /** Says why the JSON cannot be used. Null: it can. */
  onBroken: (problem: string | null) => void;
}

function Editor({ tool, args, problems, paths, workspace, onChange, onBroken }: EditorProps) {
  const { info } = useConsole();
  const [tab, setTab] = useState("form");
  const [json, setJson] = useState("");
  const parsed = tab === "json" ? parseArgs(json) : null;
  const problem = parsed !== null && "problem" in parsed ? parsed.problem : null;
  const choose = (id: string) => {
    setJson(JSON.stringify(args, null, 2));
    onBroken(null);
    setTab(id);
  };
  const type = (text: string) => {
    setJson(text);
    const read = parseArgs(text);
    onBroken("problem" in read ? read.problem : null);
    if ("args" in read) onChange(read.args);
  };
  const path = info.directCalls ? "/api/call" : "/api/call/check";
  const body = { name: tool.name, args, ...(info.workspaces.length > 1 && { workspace }) };
  const tabs = [
    { id: "form", title: "Form", content: <SchemaForm fields={listFields(tool.inputSchema)} args={args} problems={problems} paths={paths} onChange={onChange} /> },
    {
      id: "json",
      title: "JSON",
      content: (
        <>
          <textarea className="mono" aria-label="Arguments as JSON" aria-invalid={problem !== null} rows={10} spellCheck={false} value={json} onChange={(event) => type(event.target.value)} />
          {problem !== null && <p className="bad">✗ {problem}</p>}
          {Array.from(problems, ([name, text]) => <p key={name} className="bad plain-text">✗ {name} {text}</p>)}
        </>
      ),
    },
    { id: "curl", title: "curl", content: <Written text={writeCurl(window.location.origin, path, body)} language="bash" /> },
    { id: "python", title: "Python", content: <Written text={writePython(tool.name, args)} language="python" /> },
  ];
  return <Tabs label="Arguments" tabs={tabs} current={tab} onChange={choose} />;
}

function Written({ text, language }: { text: string; language: string }) {
  return (
    <>
      <Code text={text} language={language} />
      <p><CopyButton text={text} /></p>
    </>
  );
}

function Result({ shown, name }: { shown: Shown; name: string }) {
  return (
    <section className="panel tool-result" aria-label="Result">
      {shown.kind === "policy" && <DecisionView decision={shown.answer.decision} mode={shown.answer.mode} facts={shown.answer.facts} />}
      {shown.kind === "check" && <CheckView check={shown.check} />}
      {shown.kind === "run" && <RunView outcome={shown.outcome} name={name} args={shown.args} />}
    </section>
  );
}

/** What a person would be asked, or that nobody would be. A request of an allowed call only carries its preview. */
function CheckView({ check }: { check: CallCheck }) {
  const box = useRef<HTMLPreElement>(null);
  const { decision, request: asked } = check;
  if (decision == null) return null;
  if (asked != null && decision.decision === "confirm") return <RequestView request={asked} outdated={[]} command={box} onScroll={() => undefined} />;
  const preview = asked?.preview;
  return (
    <>
      <DecisionView decision={decision} />
      <p>{decision.decision === "allow" ? "It would run without approval. Nothing has run." : "It would not run."}</p>
      {preview?.output !== undefined && <Output text={preview.output} />}
      {preview != null && preview.kind !== "none" && preview.kind !== "input" && <DiffView text={preview.text} truncated={preview.truncated ?? false} />}
    </>
  );
}

function RunView({ outcome, name, args }: { outcome: CallOutcome; name: string; args: Args }) {
  const [open, setOpen] = useState(true);
  const { result, task } = outcome;
  if (result.error?.code === "PERMISSION_REQUIRED") {
    return <p>! It needs approval and waits. Nothing has run. <Link to={pathTo("inbox", ...readId(result.error.details))}>Open the request</Link></p>;
  }
  const refused = result.error?.code === "POLICY_DENIED" || result.error?.code === "PERMISSION_DENIED";
  const call: Call = { ...makeCall(result.tool_call_id, name), args, result, state: result.ok ? "ok" : refused ? "denied" : "failed" };
  return <CallCard task={task} call={call} open={open} mine={false} onToggle={setOpen} />;
}

/** The id of the request that waits. */
function readId(details: unknown): readonly string[] {
  const id = typeof details === "object" && details !== null && "id" in details ? details.id : null;
  return typeof id === "string" ? [id] : [];
}
