/** The message to the model. While a turn runs, a message is queued. */

import { useEffect, useRef, useState } from "react";
import { request } from "../../api/client";
import type { Task } from "../../api/types";
import { Form, TextArea } from "../../parts/fields";
import { Failure } from "../../parts/states";
import { useAction } from "../../state/action";
import { useConsole } from "../../state/console";

interface Props {
  id: string;
  running: boolean;
  /** Whether the connection is cut off, so that nothing can be sent. */
  offline: boolean;
  onTask: (task: Task) => void;
}

export function Composer({ id, running, offline, onTask }: Props) {
  const [text, setText] = useState("");
  const { announce } = useConsole();
  const action = useAction();
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const element = area.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, 220)}px`;
  }, [text]);
  const ready = text.trim() !== "" && !offline && !action.busy;
  const send = () =>
    action.run(async () => {
      const answer = await request("POST /api/tasks/{task}/prompt", { params: { task: id }, body: { text } });
      setText("");
      onTask(answer.task);
      announce(answer.queued === true ? "Message queued." : "Message sent.");
    });
  return (
    <Form className="composer" ready={ready} onSend={send}>
      {action.error !== null && <Failure error={action.error} />}
      <div className="composer-row">
        <TextArea
          ref={area}
          rows={1}
          aria-label="Message"
          aria-keyshortcuts="Control+Enter"
          placeholder={running ? "Queue a message …" : "Message …"}
          value={text}
          onChange={setText}
        />
        <button type="submit" className="primary" disabled={!ready} title="ctrl+enter">
          {running ? "Queue" : "Send"}
        </button>
      </div>
    </Form>
  );
}
