/** The list of tasks, with a filter. */

import { useRef, useState } from "react";
import type { TaskState } from "../../api/client";
import type { Task } from "../../api/types";
import { Choice, SearchField } from "../../parts/fields";
import { Empty, Loaded, useNow } from "../../parts/states";
import { type Column, RowLink, Table } from "../../parts/table";
import { StateLabel } from "../../parts/signs";
import { pathTo } from "../../router";
import { useWindowEvent } from "../../state/events";
import { useListKeys } from "../../state/focus";
import { useKeys } from "../../state/keys";
import { useDelayed, useRoute } from "../../state/resource";
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
  const tasks = useRoute("GET /api/tasks", { query: { text: wanted, state, limit } }, { every: EVERY_MS });
  useWindowEvent("handrail:tasks", tasks.reload);
  const filter = useRef<HTMLInputElement>(null);
  const now = useNow();
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
        <SearchField ref={filter} className="grow" label="Filter tasks by their title" aria-keyshortcuts="/" value={text} onChange={setText} />
        <Choice label="State" value={state} all="every state" options={STATES} onChange={setState} />
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
              <Table rows={data.tasks} columns={listColumns(now)} id={(task) => task.id} to={addressOf} current={current} />
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

const addressOf = (task: Task) => pathTo("tasks", task.id);
const showCount = (count: number) => (count > 0 ? count : "–");

function listColumns(now: number): readonly Column<Task>[] {
  return [
    ["State", "", (task) => <StateLabel name={task.state}>{task.state}</StateLabel>],
    ["Title", "title", (task) => <RowLink to={addressOf(task)}>{task.title === "" ? "Untitled" : task.title}</RowLink>],
    ["Files", "numeric wide-only", (task) => showCount(task.filesChanged)],
    ["Asks", "numeric wide-only", (task) => showCount(task.waiting)],
    ["Age", "numeric muted", (task) => formatAge(task.updated ?? task.created, now)],
  ];
}
