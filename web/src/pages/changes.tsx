/** The changes of a workspace: their diffs, undo with a preview, conflicts, redo. */

import { useState } from "react";
import { request, RequestFailure } from "../api/client";
import type { ChangeDetail, ChangeRecord, NewUndo } from "../api/types";
import { Counts, DiffView } from "../parts/diff";
import { ChangeTable } from "../parts/change_table";
import { CheckBox, Choice, SearchField, WorkspaceSelect } from "../parts/fields";
import { Notice, Split } from "../parts/split";
import { type Column, RowLink, Table } from "../parts/table";
import { Sign } from "../parts/signs";
import { Empty, Failure, Loaded, useNow } from "../parts/states";
import { Visible, Warnings } from "../parts/text";
import { Link, pathTo, setQuery } from "../router";
import { useAction } from "../state/action";
import { useConsole, useMayOperate } from "../state/console";
import { useListKeys } from "../state/focus";
import { useDelayed, useResource, useRoute } from "../state/resource";
import { countLines } from "../text/diff";
import { readConflict as readUndoConflict, type UndoConflict } from "../text/undo";
import { formatClock, formatPlural, joinLines } from "../text/format";
import type { PageProps } from "./index";

const PAGE = 100;
const COMMANDS = new Set(["exec", "process"]);
/** What an undo is about: a change, or the last undo. */
type Target = number | "redo";

export default function ChangesPage({ parts, query }: PageProps) {
  const { info } = useConsole();
  const task = query.get("task") ?? "";
  const tasks = useRoute("GET /api/tasks", { query: { limit: 200 } });
  // A link from a task names its change by number, which is unique in a workspace.
  const home = tasks.data?.tasks.find((one) => one.id === task)?.workspace;
  const workspace = query.get("workspace") ?? home ?? info.workspaces[0] ?? "";
  const path = useDelayed(query.get("path") ?? "", 300);
  const [limit, setLimit] = useState(PAGE);
  const ready = task === "" || query.has("workspace") || tasks.data !== undefined || tasks.error !== null;
  const changes = useRoute("GET /api/changes", ready ? { query: { workspace, task, path, limit } } : null, { every: 5000 });
  const onlyCommands = query.get("commands") === "1";
  const [redoing, setRedoing] = useState(false);
  const mayOperate = useMayOperate();
  const number = Number(parts[0]);
  const search = query.size > 0 ? `?${query.toString()}` : "";
  useListKeys();
  const titles = (tasks.data?.tasks ?? []).filter((one) => one.filesChanged > 0).map((one) => [one.id, one.title] as const);
  const owner = task || changes.data?.changes.find((one) => one.number === number)?.sessionId || "";
  const open = Number.isInteger(number) && ready ? <OpenChange key={`${workspace} ${number}`} number={number} workspace={workspace} task={owner} search={search} onChange={changes.reload} /> : null;
  const tools = mayOperate && <button type="button" className="end" onClick={() => setRedoing(true)}>Redo the last undo ↷</button>;
  return (
    <Split title="Changes" tools={tools} back={`/changes${search}`} open={open}>
      <div className="filters">
        <WorkspaceSelect value={workspace} onChange={(value) => setQuery({ workspace: value })} />
        <Choice label="Task" value={task} options={titles} all="every task" onChange={(value) => setQuery({ task: value })} />
        <SearchField label="File or folder" placeholder="File or folder" value={query.get("path") ?? ""} onChange={(value) => setQuery({ path: value })} />
        <CheckBox label="only commands" checked={onlyCommands} onChange={(checked) => setQuery({ commands: checked ? "1" : null })} />
      </div>
      {redoing && <UndoPanel target="redo" workspace={workspace} onClose={() => setRedoing(false)} onDone={changes.reload} />}
      <Loaded from={changes}>
        {(data) => {
          const listed = data.changes.filter((one) => !onlyCommands || COMMANDS.has(one.tool));
          if (listed.length === 0) return <Empty>{search === "" ? "Nothing changed yet." : "No change fits the filter."}</Empty>;
          return (
            <>
              <ChangeRows records={listed} current={number} search={search} />
              {data.changes.length === limit && limit < 1000 && (
                <button type="button" className="quiet" onClick={() => setLimit(Math.min(1000, limit + 300))}>Show more</button>
              )}
            </>
          );
        }}
      </Loaded>
    </Split>
  );
}

function ChangeRows({ records, current, search }: { records: readonly ChangeRecord[]; current: number; search: string }) {
  const now = useNow();
  const to = (one: ChangeRecord) => pathTo("changes", one.number) + search;
  const columns: readonly Column<ChangeRecord>[] = [
    ["No.", "nowrap", (one) => <><Sign name={one.inEffect ? "running" : "idle"} /> {one.number}</>],
    ["Change", "title", (one) => <Title record={one} to={to(one)} />],
    ["Size", "numeric", (one) => <Size record={one} />],
    ["Time", "numeric wide-only muted", (one) => formatClock(one.time, now)],
  ];
  return <Table columns={columns} rows={records} id={(one) => one.number} to={to} current={current} />;
}

function Title({ record, to }: { record: ChangeRecord; to: string }) {
  const facts = [
    ...(record.undoneBy === null ? [] : [`undone by ${record.undoneBy}`]),
    ...(record.undoes.length === 0 ? [] : [`undoes ${joinNumbers(record.undoes)}`]),
    ...(record.undoable ? [] : ["cannot be undone"]),
  ];
  return (
    <>
      <RowLink to={to} classes={record.inEffect ? "mono clip" : "mono clip muted"}><Visible text={joinLines(record.summary)} /></RowLink>
      <span className="note">{facts.join(", ")}</span>
    </>
  );
}

function Size({ record }: { record: ChangeRecord }) {
  const files = record.changes.filter((one) => one.kind !== "folder");
  return files.length === 1 ? <Counts {...countLines(files)} /> : <>{formatPlural(files.length, "file")}</>;
}

interface OpenProps {
  number: number;
  workspace: string;
  /** In a clone of a fleet, the number of a change is unique only with its task. */
  task: string;
  search: string;
  onChange: () => void;
}

function OpenChange({ number, workspace, task, search, onChange }: OpenProps) {
  const detail = useRoute("GET /api/changes/{number}", { params: { number }, query: { workspace, task } });
  const [undoing, setUndoing] = useState<Target | null>(null);
  const done = () => {
    detail.reload();
    onChange();
  };
  return (
    <Loaded from={detail}>
      {(data) => (
        <>
          <ChangeHead detail={data} search={search} onUndo={setUndoing} />
          {undoing !== null && <UndoPanel key={undoing} target={undoing} workspace={workspace} onClose={() => setUndoing(null)} onDone={done} />}
          <Warnings about="Not covered by undo: " texts={data.change.notCovered ?? []} />
          {data.diff === "" ? <ChangeTable changes={data.change.changes} /> : <DiffView text={data.diff} />}
        </>
      )}
    </Loaded>
  );
}

function ChangeHead({ detail, search, onUndo }: { detail: ChangeDetail; search: string; onUndo: (target: Target) => void }) {
  const now = useNow();
  const mayOperate = useMayOperate();
  const { change } = detail;
  const { undoneBy } = change;
  return (
    <>
      <h2 className="subject">{change.number} <Visible text={change.summary} /></h2>
      <div className="row">
        <span className={change.inEffect ? "tag ok" : "tag"}>{change.inEffect ? "in effect" : "undone"}</span>
        <span className="muted">{change.tool}, {formatClock(change.time, now)}</span>
        {undoneBy !== null && <Link to={pathTo("changes", undoneBy) + search}>undone by {undoneBy}</Link>}
        {change.undoes.map((one) => <Link key={one} to={pathTo("changes", one) + search}>undoes {one}</Link>)}
        {change.undoes.length === 0 && <Link to={pathTo("tasks", change.sessionId, "calls", change.toolCallId)}>Show the call</Link>}
        <span className="end row">
          {mayOperate && change.inEffect && change.undoable && (
            <button type="button" onClick={() => onUndo(change.number)}>
              {change.undoes.length > 0 ? "Undo this undo ↷" : "Undo ↶"}
            </button>
          )}
          {mayOperate && undoneBy !== null && <button type="button" onClick={() => onUndo(undoneBy)}>Redo ↷</button>}
        </span>
      </div>
    </>
  );
}

interface UndoProps {
  target: Target;
  workspace: string;
  onClose: () => void;
  onDone: () => void;
}

/** Shows the diff that an undo will make, or the ways out of its conflict. Nothing happens before the second click. */
function UndoPanel({ target, workspace, onClose, onDone }: UndoProps) {
  const { announce } = useConsole();
  const [way, setWay] = useState<{ resolve: NewUndo["resolve"]; later: readonly number[] }>({ resolve: null, later: [] });
  const [late, setLate] = useState<UndoConflict | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const action = useAction();
  const { resolve, later } = way;
  const send = (body: NewUndo, signal?: AbortSignal) => {
    const query = { workspace };
    if (target === "redo") return request("POST /api/redo", { query, body, signal });
    return request("POST /api/changes/{number}/undo", { params: { number: target }, query, body, signal });
  };
  const preview = useResource(`undo ${target} ${resolve ?? ""}`, (signal) => send({ preview: true, resolve }, signal));
  const conflict = late ?? readConflict(preview.error);
  const title = target === "redo" ? "Redo the last undo" : `Undo ${joinNumbers([...later, target])}`;
  const act = () =>
    action.run(async () => {
      try {
        const { result } = await send({ resolve });
        setDone(result?.summary ?? "Done.");
        announce(result?.summary ?? "Done.");
        onDone();
      } catch (error) {
        const found = readConflict(error);
        if (found === null) throw error;
        setLate(found);
      }
    });
  const close = () => {
    onClose();
    document.getElementById("main")?.focus();
  };
  const cancel = <button type="button" onClick={close}>{done === null ? "Cancel" : "Close"}</button>;
  if (done === null && conflict !== null) {
    const choose = (choice: "later" | "lines") => {
      setLate(null);
      setWay({ resolve: choice, later: choice === "later" ? conflict.later : [] });
    };
    return <ConflictView conflict={conflict} target={target} onChoose={choose} cancel={cancel} />;
  }
  if (done !== null || preview.error !== null) {
    return (
      <Notice key="end">
        {done === null ? <Failure error={preview.error} /> : <p>✓ <Visible text={done} /></p>}
        <p>{cancel}</p>
      </Notice>
    );
  }
  return (
    <Notice key="preview">
      <p>
        <b>{title}</b>
        {resolve === "lines" && ", only lines that still match"}. Nothing happened yet. This is what it will change:
      </p>
      <Loaded from={preview}>
        {({ diff }) => (diff === "" ? <p className="muted">It changes no text: folders, modes or files without text only.</p> : <DiffView text={diff} />)}
      </Loaded>
      {action.error !== null && <Failure error={action.error} />}
      <div className="row">
        {preview.data !== undefined && <button type="button" className="primary" disabled={action.busy} onClick={act}>{title}</button>}
        {cancel}
      </div>
    </Notice>
  );
}

/** `15 and 14`. */
function joinNumbers(numbers: readonly Target[]): string {
  return numbers.join(", ").replace(/, (\w+)$/, " and $1");
}

interface ConflictProps {
  conflict: UndoConflict;
  target: Target;
  onChoose: (choice: "later" | "lines") => void;
  cancel: React.ReactNode;
}

function ConflictView({ conflict, target, onChoose, cancel }: ConflictProps) {
  return (
    <Notice key="conflict" harm>
      {conflict.files.map((file) => (
        <p key={file.path}>
          ! <Visible text={file.path} /> was changed again {file.by.length > 0 ? `by ${joinNumbers(file.by)}` : "outside handrail"}.
        </p>
      ))}
      <p>Nothing was undone.</p>
      <div className="row">
        {conflict.choices.includes("later") && (
          <button type="button" onClick={() => onChoose("later")}>Undo {joinNumbers([...conflict.later, target])}</button>
        )}
        {conflict.choices.includes("lines") && (
          <button type="button" onClick={() => onChoose("lines")}>Undo only lines that still match</button>
        )}
        {cancel}
      </div>
    </Notice>
  );
}

/** The conflict, if a request failed because of one. */
function readConflict(error: unknown): UndoConflict | null {
  return error instanceof RequestFailure ? readUndoConflict(error.code, error.details) : null;
}
