/** A task: its conversation, what waits in it, and the composer. */

import { useEffect, useMemo, useRef, useState } from "react";
import { type ModeName, request } from "../../api/client";
import type { Task } from "../../api/types";
import { Choice } from "../../parts/fields";
import { listModes, MODE_WORDS } from "../../parts/modes";
import { Dock } from "../../parts/permission/dock";
import { Empty, Failure, Skeleton } from "../../parts/states";
import { StateLabel } from "../../parts/signs";
import { Link, navigate, pathTo } from "../../router";
import { useAction } from "../../state/action";
import { useConsole, useMayOperate, useSubject } from "../../state/console";
import { emit } from "../../state/events";
import { getCall } from "../../state/conversation";
import { type TaskFeed, type TaskView, useTaskFeed } from "../../state/socket";
import { useRoute } from "../../state/resource";
import { formatPlural } from "../../text/format";
import { Composer } from "./composer";
import { ItemList } from "./items";

export function TaskConversation({ id, call }: { id: string; call: string | null }) {
  const { feed, view } = useTaskFeed(id);
  const { conversation, link, problem } = view;
  const mayOperate = useMayOperate();
  // The state of the task comes by the feed. This is for the time before it.
  const stored = useRoute("GET /api/tasks/{task}", { params: { task: id } });
  const task = view.task ?? stored.data ?? null;
  useSubject(task?.title ?? "");
  const stoppedAt = useRef(-Infinity);
  const state = view.task?.state;
  // The list of tasks does not wait for its next look.
  useEffect(() => emit("handrail:tasks"), [state]);
  const offline = link !== "open";
  const running = conversation.active && (task === null || task.state === "running" || task.state === "waiting");
  const waiting = useMemo(() => conversation.waiting.flatMap((one) => getCall(conversation, one) ?? []), [conversation]);
  const empty = view.caughtUp ? <Empty>Nothing here yet. Send a message.</Empty> : <Skeleton rows={8} />;
  return (
    <section className="conversation" aria-label="Task">
      <Head id={id} task={task} feed={feed} view={view} onStop={() => (stoppedAt.current = performance.now())} />
      {link === "broken" && (
        <p className="banner" role="status">
          Reconnecting; nothing is lost.
        </p>
      )}
      {link === "closed" && <Failure error={problem ?? "The connection ended."} />}
      {conversation.items.length === 0 ? (
        <div className="items">{link !== "closed" && empty}</div>
      ) : (
        <ItemList task={id} conversation={conversation} selected={call} />
      )}
      <Dock waiting={waiting} previews={view.previews} offline={offline} stoppedAt={stoppedAt} />
      {mayOperate && <Composer id={id} running={running} offline={offline} onTask={(fresh) => feed.setTask(fresh)} />}
    </section>
  );
}

interface HeadProps {
  id: string;
  task: Task | null;
  feed: TaskFeed;
  view: TaskView;
  onStop: () => void;
}

function Head({ id, task, feed, view, onStop }: HeadProps) {
  const mayOperate = useMayOperate();
  const action = useAction();
  const run = (work: () => Promise<Task>) => action.run(async () => feed.setTask(await work()));
  const off = view.link !== "open" || action.busy;
  const processes = view.conversation.running.length;
  return (
    <header className="task-head">
      <div className="row">
        <Link to="/tasks" className="back">
          ‹ <span className="only-read">Back to the </span>Tasks
        </Link>
        <h1>{task === null || task.title === "" ? "Untitled" : task.title}</h1>
      </div>
      {task !== null && (
        <div className="row task-facts">
          <StateLabel name={task.state}>{task.state}</StateLabel>
          <ModeChooser task={task} mode={view.conversation.mode} off={off || !mayOperate} run={run} />
          {task.model !== null && <span className="muted">{task.model}</span>}
          {task.filesChanged > 0 && (
            <Link to={`/changes?task=${encodeURIComponent(id)}`}>{formatPlural(task.filesChanged, "file")} changed</Link>
          )}
          {processes > 0 && <Link to="/processes">{formatPlural(processes, "process", "processes")} running</Link>}
          <span className="row end">
            <Link to={pathTo("tasks", id, "replay")}>Replay</Link>
            <Link to={pathTo("tasks", id, "trace")}>Trace</Link>
            {mayOperate && <TaskButtons task={task} off={off} act={action.run} run={run} onStop={onStop} />}
          </span>
        </div>
      )}
      {task !== null && task.reason !== "" && <p className="note bad">{task.reason}</p>}
      {action.error !== null && <Failure error={action.error} />}
    </header>
  );
}

interface ModeProps {
  task: Task;
  mode: string | null;
  off: boolean;
  run: (work: () => Promise<Task>) => void;
}

function ModeChooser({ task, mode, off, run }: ModeProps) {
  const { info } = useConsole();
  const current = (mode ?? task.mode ?? "") as ModeName | "";
  const choose = (chosen: ModeName | "") => {
    if (chosen !== "") run(() => request("POST /api/tasks/{task}/mode", { params: { task: task.id }, body: { mode: chosen } }));
  };
  const unknown = current === "" ? { all: "mode" } : { title: MODE_WORDS[current] };
  return <Choice className="compact" label="Mode" disabled={off} value={current} options={listModes(info.modes, true)} onChange={choose} {...unknown} />;
}

interface ButtonsProps {
  task: Task;
  off: boolean;
  act: (work: () => Promise<void>) => void;
  /** Shows the task that the work returns. */
  run: (work: () => Promise<Task>) => void;
  onStop: () => void;
}

function TaskButtons({ task, off, act, run, onStop }: ButtonsProps) {
  const { role } = useConsole().info.caller;
  const [sure, setSure] = useState(false);
  const params = { task: task.id };
  const isBusy = task.state === "running" || task.state === "waiting" || task.state === "interrupted";
  const resume = () => run(async () => (await request("POST /api/tasks/{task}/resume", { params })).task);
  const stop = () => {
    onStop();
    run(async () => (await request("POST /api/tasks/{task}/cancel", { params })).task);
  };
  const fork = () => act(async () => navigate(pathTo("tasks", (await request("POST /api/tasks/{task}/fork", { params, body: {} })).id)));
  const remove = () =>
    act(async () => {
      await request("DELETE /api/tasks/{task}", { params });
      navigate("/tasks");
    });
  if (isBusy) {
    return (
      <>
        {task.state === "interrupted" && (
          <button type="button" disabled={off} onClick={resume}>
            Resume
          </button>
        )}
        <button type="button" className="danger" disabled={off} onClick={stop}>
          Stop
        </button>
      </>
    );
  }
  return (
    <>
      <button type="button" disabled={off} onClick={fork} title="Starts a task with a copy of this transcript">
        Fork
      </button>
      {sure && (
        <button type="button" className="danger" disabled={off} onClick={remove}>
          Delete for good
        </button>
      )}
      {role === "admin" && (
        <button type="button" disabled={off && !sure} onClick={() => setSure(!sure)}>
          {sure ? "Cancel" : "Delete…"}
        </button>
      )}
    </>
  );
}
