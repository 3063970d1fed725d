/** The tasks: a list, and the conversation of one beside it. */

import { lazy, Suspense, useState } from "react";
import { useConsole, useMayOperate } from "../state/console";
import { useKeys } from "../state/keys";
import type { PageProps } from "./index";
import { TaskConversation } from "./tasks/conversation";
import { TaskTable } from "./tasks/list";
import { NewTaskDialog } from "./tasks/new_task";
import "./tasks/tasks.css";

const TaskTrace = lazy(() => import("./tasks/trace"));
const TaskReplay = lazy(() => import("./tasks/replay"));

export default function TasksPage({ parts }: PageProps) {
  const [creating, setCreating] = useState(false);
  const { announce } = useConsole();
  const mayOperate = useMayOperate();
  const [id, view, detail] = parts;
  useKeys({ n: () => setCreating(true) }, mayOperate);
  return (
    <div className={id === undefined ? "tasks" : "tasks with-task"}>
      <TaskTable current={id ?? null} onNew={mayOperate ? () => setCreating(true) : null} />
      {id !== undefined && (
        <Suspense fallback={null}>
          {view === "trace" && <TaskTrace key={id} task={id} />}
          {view === "replay" && <TaskReplay key={id} task={id} />}
          {view !== "trace" && view !== "replay" && (
            <TaskConversation key={id} id={id} call={view === "calls" ? (detail ?? null) : null} />
          )}
        </Suspense>
      )}
      {creating && (
        <NewTaskDialog
          onClose={() => setCreating(false)}
          onCreated={(title) => {
            setCreating(false);
            announce(`Task started: ${title}`);
          }}
        />
      )}
    </div>
  );
}
