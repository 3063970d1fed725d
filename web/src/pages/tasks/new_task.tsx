/** Starts a task. */

import { type KeyboardEvent, type SyntheticEvent, useState } from "react";
import { type ModeName, request } from "../../api/client";
import { Dialog } from "../../parts/dialog";
import { ModeOptions } from "../../parts/modes";
import { Failure } from "../../parts/states";
import { navigate, pathTo } from "../../router";
import { useAction } from "../../state/action";
import { useConsole } from "../../state/console";

export function NewTaskDialog({ onClose, onCreated }: { onClose: () => void; onCreated: (title: string) => void }) {
  const { info } = useConsole();
  const [prompt, setPrompt] = useState("");
  const [workspace, setWorkspace] = useState(info.workspaces[0] ?? "");
  const [model, setModel] = useState(info.models[0] ?? "");
  const [mode, setMode] = useState<ModeName | undefined>(info.modes[0]);
  const action = useAction();
  const ready = prompt.trim() !== "" && info.models.length > 0 && !action.busy;
  const start = () => {
    if (!ready) return;
    action.run(async () => {
      const task = await request("POST /api/tasks", { body: { prompt, workspace, mode, model } });
      onCreated(task.title);
      navigate(pathTo("tasks", task.id));
    });
  };
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    start();
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start();
    }
  };
  return (
    <Dialog title="New task" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="stack">
          What should the model do?
          <textarea rows={5} value={prompt} onChange={(event) => setPrompt(event.target.value)} onKeyDown={press} />
        </label>
        <div className="row">
          <label className="stack">
            Mode
            <select value={mode} onChange={(event) => setMode(event.target.value as ModeName)}>
              <ModeOptions modes={info.modes} />
            </select>
          </label>
          {info.models.length > 1 && (
            <label className="stack">
              Model
              <select value={model} onChange={(event) => setModel(event.target.value)}>
                {info.models.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
          )}
          {info.workspaces.length > 1 && (
            <label className="stack">
              Workspace
              <select value={workspace} onChange={(event) => setWorkspace(event.target.value)}>
                {info.workspaces.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            </label>
          )}
        </div>
        {info.models.length === 0 && (
          <p className="note">
            No model is set up. Set <code>ANTHROPIC_API_KEY</code> or <code>OPENAI_API_KEY</code>, or start the server with{" "}
            <code>--model</code>.
          </p>
        )}
        {action.error !== null && <Failure error={action.error} />}
        <div className="row">
          <button type="submit" className="primary" disabled={!ready}>
            Start
          </button>
          <span className="note">ctrl+enter</span>
        </div>
      </form>
    </Dialog>
  );
}
