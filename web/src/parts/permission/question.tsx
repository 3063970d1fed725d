/** A question of the model: options, own words, or both. */

import { useId, useState } from "react";
import { request } from "../../api/client";
import type { Question } from "../../api/types";
import { useAction } from "../../state/action";
import { useConsole, useMayOperate } from "../../state/console";
import { Form, Labelled, TextArea } from "../fields";
import { MarkdownText } from "../text";
import { type Answering, Frame } from "./frame";
import { useGuard } from "./guard";

export function QuestionForm({ question, position = "", offline, extra, onAnswered, onSending }: Answering & { question: Question }) {
  const options = question.options ?? [];
  const multiple = question.multiple === true;
  const own = question.custom === true || options.length === 0;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [text, setText] = useState("");
  const { announce, inbox } = useConsole();
  const action = useAction();
  const form = useId();
  const guard = useGuard(question.toolCallId);
  const mayOperate = useMayOperate();
  const off = offline || action.busy || !mayOperate;
  const ready = !off && (chosen.size > 0 || text.trim() !== "");
  const choose = (option: string) => {
    const next = new Set(multiple ? chosen : []);
    if (!chosen.has(option)) next.add(option);
    else next.delete(option);
    setChosen(next);
  };
  const reply = (dismiss: boolean) => {
    if (!guard()) return;
    action.run(async () => {
      const body = dismiss ? {} : { chosen: options.filter((one) => chosen.has(one)), text: text.trim() === "" ? null : text.trim() };
      onSending?.(question.toolCallId);
      const outcome = await request("POST /api/questions/{question}/reply", { params: { question: question.toolCallId }, body });
      announce(dismiss ? "Question dismissed." : "Reply sent.");
      onAnswered(outcome);
      inbox.reload();
    });
  };
  const foot = (
    <div className="row drawer-buttons">
      <button type="submit" form={form} className="primary" disabled={!ready}>
        Reply
      </button>
      <button type="button" disabled={off} onClick={() => reply(true)}>
        Dismiss
      </button>
    </div>
  );
  return (
    <Frame sign="?" title={`Question${position}`} extra={extra} error={action.error} foot={foot}>
      <Form id={form} ready={ready} onSend={() => reply(false)}>
        <MarkdownText text={question.question} />
        {options.length > 0 && (
          <fieldset className="stack">
            <legend className="only-read">{multiple ? "Choose one or more" : "Choose one"}</legend>
            {options.map((option) => (
              <label key={option} className="option">
                <input
                  type={multiple ? "checkbox" : "radio"}
                  name={form}
                  checked={chosen.has(option)}
                  disabled={off}
                  onChange={() => choose(option)}
                />
                {option}
              </label>
            ))}
          </fieldset>
        )}
        {own && (
          <Labelled label={options.length > 0 ? "In your own words" : "Your reply"}>
            <TextArea rows={2} value={text} disabled={off} onChange={setText} />
          </Labelled>
        )}
      </Form>
    </Frame>
  );
}
