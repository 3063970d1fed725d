/** The tool palette: choose a tool, fill in its arguments, see what the policy and the preview say, run it. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { request } from "../api/client";
import type { CallCheck, CallOutcome, ToolDescription } from "../api/types";
import { Code } from "../parts/code";
import { DecisionView } from "../parts/decision";
import { DiffView } from "../parts/diff";
import { Output } from "../parts/output";
import "../parts/permission/permission.css";
import { RequestView } from "../parts/permission/request_view";
import { SchemaForm } from "../parts/schema_form";
import { CodeArea, Form, SearchField, WorkspaceSelect } from "../parts/fields";
import { CopyButton } from "../parts/split";
import { Empty, Failure, Loaded } from "../parts/states";
import { Tabs } from "../parts/tabs";
import { Link, navigate, pathTo } from "../router";
import { useAction } from "../state/action";
import { useConsole, useMayOperate } from "../state/console";
import { type Call, makeCall } from "../state/conversation";
import { useListKeys } from "../state/focus";
import { useRoute } from "../state/resource";
import { asRecord, isString } from "../text/json";
import { type Args, checkArgs, listFields, parseArgs, type Problems, readProblems, startArgs, writeCurl, writePython } from "../text/schema";
import type { PageProps } from "./index";
import { CallCard } from "./tasks/card";
import "./tasks/tasks.css";
import "./tools.css";

export default function ToolsPage({ parts }: PageProps) {
  const { info } = useConsole();
  const [workspace, setWorkspace] = useState(info.workspaces[0] ?? "");
  const tools = useRoute("GET /api/tools", { query: { workspace } });
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
      <SearchField
        ref={filter}
        label="Find a tool"
        placeholder="Find a tool"
        value={text}
        onChange={setText}
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

function ToolPanel({ tool, workspace }: { tool: ToolDescription; workspace: string }) {
  const { info, announce } = useConsole();
  const mayOperate = useMayOperate();
  const fields = listFields(tool.inputSchema);
  const [args, setArgs] = useState<Args>(() => startArgs(fields));
  const [problems, setProblems] = useState<Problems>(new Map());
  const [shown, setShown] = useState<ReactNode>(null);
  // What was typed as JSON, while its tab is open.
  const [json, setJson] = useState<string | null>(null);
  const read = json === null ? null : parseArgs(json);
  const broken = read !== null && "problem" in read ? read.problem : null;
  const action = useAction();
  const call = { name: tool.name, args, workspace };
  const change = (fresh: Args) => {
    setArgs(fresh);
    setProblems(new Map());
    setShown(null);
  };
  /** Nothing is sent while a field has a problem. */
  const send = (work: () => Promise<ReactNode>) => {
    const found = checkArgs(tool.inputSchema, args);
    setProblems(found);
    setShown(null);
    if (found.size > 0) {
      announce(`${found.size} problems. Nothing was sent.`);
      window.requestAnimationFrame(() => document.querySelector<HTMLElement>(".schema-form [aria-invalid=true]")?.focus());
      return;
    }
    action.run(async () => {
      setShown(await work());
      announce("The result is below the buttons.");
    });
  };
  const explain = () =>
    send(async () => {
      const { decision, mode, facts } = await request("POST /api/policy/explain", { body: { tool: tool.name, args, workspace } });
      return <DecisionView decision={decision} mode={mode} facts={facts} />;
    });
  const check = () =>
    send(async () => {
      const found = await request("POST /api/call/check", { body: call });
      setProblems(readProblems(found.problems));
      return found.problems.length === 0 && <CheckView check={found} />;
    });
  const run = () => send(async () => <RunView outcome={await request("POST /api/call", { body: call })} name={tool.name} args={args} />);
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
      <Form ready={!off} onSend={mayOperate ? check : explain}>
        <Editor tool={tool} args={args} problems={problems} workspace={workspace} json={json} broken={broken} onChange={change} onJson={setJson} />
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
      </Form>
      {action.error !== null && <Failure error={action.error} />}
      {shown != null && shown !== false && <section className="panel tool-result" aria-label="Result">{shown}</section>}
    </section>
  );
}

/** Files to offer: those that were changed last. */
function usePaths(workspace: string): readonly string[] {
  const changes = useRoute("GET /api/changes", { query: { workspace, limit: 50 } });
  const listed = changes.data?.changes.flatMap((one) => one.changes.filter((path) => path.action !== "deleted").map((path) => path.path));
  return Array.from(new Set(listed ?? []));
}

interface EditorProps {
  tool: ToolDescription;
  args: Args;
  problems: Problems;
  workspace: string;
  json: string | null;
  /** Why the JSON cannot be used. Null: it can. */
  broken: string | null;
  onChange: (args: Args) => void;
  onJson: (json: string | null) => void;
}

function Editor({ tool, args, problems, workspace, json, broken, onChange, onJson }: EditorProps) {
  const { info } = useConsole();
  const paths = usePaths(workspace);
  const [tab, setTab] = useState("form");
  const choose = (id: string) => {
    onJson(id === "json" ? JSON.stringify(args, null, 2) : null);
    setTab(id);
  };
  const type = (text: string) => {
    onJson(text);
    const read = parseArgs(text);
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
          <CodeArea aria-label="Arguments as JSON" aria-invalid={broken !== null} rows={10} value={json ?? ""} onChange={type} />
          {broken !== null && <p className="bad">✗ {broken}</p>}
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
    return <p>! It needs approval and waits. Nothing has run. <Link to={pathTo("inbox", ...[asRecord(result.error.details).id].filter(isString))}>Open the request</Link></p>;
  }
  const refused = result.error?.code === "POLICY_DENIED" || result.error?.code === "PERMISSION_DENIED";
  const call: Call = { ...makeCall(result.tool_call_id, name), args, result, state: result.ok ? "ok" : refused ? "denied" : "failed" };
  return <CallCard task={task} call={call} open={open} onToggle={setOpen} />;
}
