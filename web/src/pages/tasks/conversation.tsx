/** A task: its conversation, what waits in it, and the composer. */

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { type ModeName, request } from "../../api/client";
import type { Task } from "../../api/types";
import { MODE_WORDS, ModeOptions } from "../../parts/modes";
import { Dock } from "../../parts/permission/dock";
import { Empty, Failure, Skeleton } from "../../parts/states";
import { TaskStateLabel } from "../../parts/task_state";
import { Link, navigate, pathTo } from "../../router";
import { type Action, useAction } from "../../state/action";
import { useConsole, useMayOperate, useSubject } from "../../state/console";
import { getCall } from "../../state/conversation";
import { useTaskFeed } from "../../state/feed";
import type { TaskFeed, TaskView } from "../../state/socket";
import { reportTaskChange } from "../../state/tasks_changed";
import { useResource } from "../../state/resource";
import { formatPlural } from "../../text/format";
import { Composer } from "./composer";
import { ItemList } from "./items";

export function TaskConversation({ id, call }: { id: string; call: string | null }) {
  const { feed, view } = useTaskFeed(id);
  const [answered, setAnswered] = useState<ReadonlySet<string>>(new Set());
  const mayOperate = useMayOperate();
  // The state of the task comes by the feed. This is for the time before it.
  const stored = useResource(`task ${id}`, (signal) => request("GET /api/tasks/{task}", { params: { task: id }, signal }));
  const task = view.task ?? stored.data ?? null;
  useSubject(task?.title ?? "");
  const stoppedAt = useRef(-Infinity);
  const state = view.task?.state;
  useEffect(reportTaskChange, [state]);
  const offline = view.link !== "open";
  const running = view.conversation.active && (task === null || task.state === "running" || task.state === "waiting");
  const waiting = useMemo(
    () => view.conversation.waiting.flatMap((one) => getCall(view.conversation, one) ?? []),
    [view.conversation],
  );
  return (
    <section className="conversation" aria-label="Task">
      <Head id={id} task={task} feed={feed} view={view} offline={offline} onStop={() => (stoppedAt.current = performance.now())} />
      {view.link === "broken" && (
        <p className="banner" role="status">
          Reconnecting; nothing is lost.
        </p>
      )}
      {view.link === "closed" && <Failure error={new Error(view.problem ?? "The connection ended.")} />}
      {!view.caughtUp && view.conversation.items.length === 0 && view.link !== "closed" ? (
        <Late>
          <Skeleton rows={8} />
        </Late>
      ) : view.conversation.items.length === 0 ? (
        <div className="items">{view.link !== "closed" && <Empty>Nothing here yet. Send a message.</Empty>}</div>
      ) : (
        <ItemList task={id} conversation={view.conversation} selected={call} answered={answered} />
      )}
      <Dock
        task={id}
        waiting={waiting}
        previews={view.previews}
        offline={offline}
        mayAnswer={mayOperate}
        stoppedAt={stoppedAt}
        onAnswered={(subject) => setAnswered((before) => new Set(before).add(subject))}
      />
      {mayOperate && <Composer id={id} running={running} offline={offline} onTask={(fresh) => feed.setTask(fresh)} />}
    </section>
  );
}

function Late({ children }: { children: ReactNode }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setLate(true), 200);
    return () => window.clearTimeout(timer);
  }, []);
  return <div className="items">{late && children}</div>;
}

interface HeadProps {
  id: string;
  task: Task | null;
  feed: TaskFeed;
  view: TaskView;
  offline: boolean;
  onStop: () => void;
}

function Head({ id, task, feed, view, offline, onStop }: HeadProps) {
  const mayOperate = useMayOperate();
  const action = useAction();
  const act = (work: () => Promise<Task>) => action.run(async () => feed.setTask(await work()));
  const params = { task: id };
  const stop = () => {
    onStop();
    act(async () => (await request("POST /api/tasks/{task}/cancel", { params })).task);
  };
  const resume = () =>
    act(async () => (await request("POST /api/tasks/{task}/resume", { params })).task);
  const off = offline || action.busy;
  return (
    <header className="task-head">
      <div className="row">
        <Link to="/tasks" className="back">
          ‹ <span className="only-read">Back to the </span>Tasks
        </Link>
        <h1>{task === null || task.title === "" ? "Untitled" : task.title}</h1>
      </div>
      <div className="row task-facts">
        {task !== null && <TaskStateLabel state={task.state} />}
        {task !== null && <ModeChooser id={id} task={task} mode={view.conversation.mode} off={off || !mayOperate} act={act} />}
        {task?.model !== null && task !== null && <span className="muted">{task.model}</span>}
        {task !== null && task.filesChanged > 0 && (
          <Link to={`/changes?task=${encodeURIComponent(id)}`}>{formatPlural(task.filesChanged, "file")} changed</Link>
        )}
        {view.conversation.running.length > 0 && (
          <Link to="/processes">{formatPlural(view.conversation.running.length, "process", "processes")} running</Link>
        )}
        <span className="row end">
          {task !== null && <Link to={pathTo("tasks", id, "replay")}>Replay</Link>}
          {task !== null && <Link to={pathTo("tasks", id, "trace")}>Trace</Link>}
          {mayOperate && (
            <>
              {task?.state === "interrupted" && (
                <button type="button" disabled={off} onClick={resume}>
                  Resume
                </button>
              )}
              {task !== null && !isBusy(task) && <TaskMenu id={id} off={off} action={action} />}
              {task !== null && isBusy(task) && (
                <button type="button" className="danger" disabled={off} onClick={stop}>
                  Stop
                </button>
              )}
            </>
          )}
        </span>
      </div>
      {task !== null && task.reason !== "" && <p className="note bad">{task.reason}</p>}
      {action.error !== null && <Failure error={action.error} />}
    </header>
  );
}

function isBusy(task: Task): boolean {
  return task.state === "running" || task.state === "waiting" || task.state === "interrupted";
}

interface ModeProps {
  id: string;
  task: Task;
  mode: string | null;
  off: boolean;
  act: (work: () => Promise<Task>) => void;
}

function ModeChooser({ id, task, mode, off, act }: ModeProps) {
  const { info } = useConsole();
  const current = (mode ?? task.mode ?? undefined) as ModeName | undefined;
  const modes = current === undefined || info.modes.includes(current) ? info.modes : [current, ...info.modes];
  const choose = (chosen: ModeName) =>
    act(() => request("POST /api/tasks/{task}/mode", { params: { task: id }, body: { mode: chosen } }));
  return (
    <select
      className="compact"
      aria-label="Mode"
      title={current === undefined ? undefined : MODE_WORDS[current]}
      disabled={off}
      value={current ?? ""}
      onChange={(event) => choose(event.target.value as ModeName)}
    >
      {current === undefined && <option value="">mode</option>}
      <ModeOptions modes={modes} short />
    </select>
  );
}

function TaskMenu({ id, off, action }: { id: string; off: boolean; action: Action }) {
  const { info } = useConsole();
  const [sure, setSure] = useState(false);
  const params = { task: id };
  const fork = () =>
    action.run(async () => {
      const task = await request("POST /api/tasks/{task}/fork", { params, body: {} });
      navigate(pathTo("tasks", task.id));
    });
  const remove = () =>
    action.run(async () => {
      await request("DELETE /api/tasks/{task}", { params });
      navigate("/tasks");
    });
  return (
    <>
      <button type="button" disabled={off} onClick={fork} title="Starts a task with a copy of this transcript">
        Fork
      </button>
      {info.caller.role === "admin" &&
        (sure ? (
          <>
            <button type="button" className="danger" disabled={off} onClick={remove}>
              Delete for good
            </button>
            <button type="button" onClick={() => setSure(false)}>
              Cancel
            </button>
          </>
        ) : (
          <button type="button" disabled={off} onClick={() => setSure(true)}>
            Delete…
          </button>
        ))}
    </>
  );
}
