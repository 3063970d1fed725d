/** Starts a task. */

import { useState } from "react";
import { type ModeName, request } from "../../api/client";
import { Dialog } from "../../parts/dialog";
import { Choice, Form, Labelled, TextArea, WorkspaceSelect } from "../../parts/fields";
import { listModes } from "../../parts/modes";
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
  const start = () =>
    action.run(async () => {
      const task = await request("POST /api/tasks", { body: { prompt, workspace, mode, model } });
      onCreated(task.title);
      navigate(pathTo("tasks", task.id));
    });
  return (
    <Dialog title="New task" onClose={onClose}>
      <Form ready={ready} onSend={start}>
        <Labelled label="What should the model do?">
          <TextArea rows={5} value={prompt} onChange={setPrompt} />
        </Labelled>
        <div className="row">
          <Labelled label="Mode">
            <Choice label="Mode" value={mode ?? "ask"} options={listModes(info.modes)} onChange={setMode} />
          </Labelled>
          {info.models.length > 1 && (
            <Labelled label="Model">
              <Choice label="Model" value={model} options={info.models} onChange={setModel} />
            </Labelled>
          )}
          {info.workspaces.length > 1 && (
            <Labelled label="Workspace">
              <WorkspaceSelect value={workspace} onChange={setWorkspace} />
            </Labelled>
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
      </Form>
    </Dialog>
  );
}
