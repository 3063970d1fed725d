/** The list of tasks, with a filter. */

import { useEffect, useRef, useState } from "react";
import { request, type TaskState } from "../../api/client";
import type { Task } from "../../api/types";
import { Empty, Loaded, useNow } from "../../parts/states";
import { type Column, RowLink, Table } from "../../parts/table";
import { TaskStateLabel } from "../../parts/task_state";
import { pathTo } from "../../router";
import { useListKeys } from "../../state/focus";
import { useKeys } from "../../state/keys";
import { useTaskChanges } from "../../state/tasks_changed";
import { useResource } from "../../state/resource";
import { formatAge } from "../../text/format";

const EVERY_MS = 4000;
const PAGE = 100;
const STATES: readonly TaskState[] = ["waiting", "running", "done", "failed", "interrupted", "cancelled", "limit", "idle"];

interface Props {
  current: string | null;
  /** Null: the caller may not start tasks. */
  onNew: (() => void) | null;
}

export function TaskTable({ current, onNew }: Props) {
  const [text, setText] = useState("");
  const [state, setState] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const wanted = useDelayed(text, 200);
  const tasks = useResource(
    `tasks ${state} ${limit} ${wanted}`,
    (signal) => request("GET /api/tasks", { query: { text: wanted, state, limit }, signal }),
    { every: EVERY_MS },
  );
  useTaskChanges(tasks.reload);
  const filter = useRef<HTMLInputElement>(null);
  const listed = tasks.data?.tasks ?? [];
  useKeys({ "/": () => filter.current?.focus() });
  useListKeys(".task-list .row-link", current === null);
  return (
    <section className="task-list" aria-labelledby="tasks-heading">
      <header className="page-head">
        {current === null ? <h1 id="tasks-heading">Tasks</h1> : <h2 id="tasks-heading">Tasks</h2>}
        {onNew !== null && (
          <button type="button" className="primary end" onClick={onNew} aria-keyshortcuts="n">
            New task
          </button>
        )}
      </header>
      <div className="task-filter">
        <input
          ref={filter}
          type="search"
          className="grow"
          aria-label="Filter tasks by their title"
          aria-keyshortcuts="/"
          placeholder="Filter"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <select aria-label="State" value={state} onChange={(event) => setState(event.target.value)}>
          <option value="">every state</option>
          {STATES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </div>
      <Loaded from={tasks}>
        {(data) =>
          data.tasks.length === 0 ? (
            <Empty>
              {wanted === "" && state === "" ? (
                <>
                  No tasks yet. Start one, or run <code>handrail demo</code>.
                </>
              ) : (
                "No task fits the filter."
              )}
            </Empty>
          ) : (
            <>
              <Rows tasks={listed} current={current} />
              {data.total > data.tasks.length && (
                <button type="button" className="quiet" onClick={() => setLimit(limit + PAGE)}>
                  Show more of {data.total.toLocaleString("en")}
                </button>
              )}
            </>
          )
        }
      </Loaded>
    </section>
  );
}

const COLUMNS: readonly Column[] = [
  ["State"],
  ["Title", "title"],
  ["Files", "numeric wide-only"],
  ["Asks", "numeric wide-only"],
  ["Age", "numeric muted"],
];

function Rows({ tasks, current }: { tasks: readonly Task[]; current: string | null }) {
  const now = useNow();
  const count = (number: number) => (number > 0 ? number : "–");
  const rows = tasks.map((task) => {
    const to = pathTo("tasks", task.id);
    const title = <RowLink to={to}>{task.title === "" ? "Untitled" : task.title}</RowLink>;
    const age = formatAge(task.updated ?? task.created, now);
    const cells = [<TaskStateLabel key="state" state={task.state} />, title, count(task.filesChanged), count(task.waiting), age];
    return { key: task.id, to, current: task.id === current, cells };
  });
  return <Table columns={COLUMNS} rows={rows} />;
}

/** A value once it did not change for a while. */
export function useDelayed<T>(value: T, milliseconds: number): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setDelayed(value), milliseconds);
    return () => window.clearTimeout(timer);
  }, [value, milliseconds]);
  return delayed;
}
