/** A question of the model: options, own words, or both. */

import { type SyntheticEvent, useId, useState } from "react";
import { request } from "../../api/client";
import type { AnswerOutcome, Question } from "../../api/types";
import { useAction } from "../../state/action";
import { useConsole } from "../../state/console";
import { Failure } from "../states";
import { MarkdownText } from "../text";
import { useGuard } from "./guard";
import "./permission.css";

interface Props {
  question: Question;
  position?: string;
  offline: boolean;
  mayAnswer: boolean;
  onAnswered: (outcome: AnswerOutcome) => void;
  /** A reply is on its way. Its event may come before its response. */
  onSending?: (subject: string) => void;
}

export function QuestionForm({ question, position = "Question", offline, mayAnswer, onAnswered, onSending }: Props) {
  const options = question.options ?? [];
  const multiple = question.multiple === true;
  const own = question.custom === true || options.length === 0;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [text, setText] = useState("");
  const { announce, inbox } = useConsole();
  const action = useAction();
  const heading = useId();
  const guard = useGuard(question.toolCallId);
  const off = offline || action.busy || !mayAnswer;
  const empty = chosen.size === 0 && text.trim() === "";
  const choose = (option: string) => {
    const next = new Set(multiple ? chosen : []);
    if (!chosen.has(option)) next.add(option);
    else next.delete(option);
    setChosen(next);
  };
  const reply = (dismiss: boolean) =>
    action.run(async () => {
      const body = dismiss ? {} : { chosen: options.filter((one) => chosen.has(one)), text: text.trim() === "" ? null : text.trim() };
      onSending?.(question.toolCallId);
      const outcome = await request("POST /api/questions/{question}/reply", { params: { question: question.toolCallId }, body });
      announce(dismiss ? "Question dismissed." : "Reply sent.");
      onAnswered(outcome);
      inbox.reload();
    });
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!off && !empty && guard()) reply(false);
  };
  return (
    <section className="drawer" aria-labelledby={heading} tabIndex={-1}>
      <form className="question" onSubmit={submit}>
        <header className="drawer-head">
          <h2 id={heading}>
            <span className="warn" aria-hidden="true">
              ?{" "}
            </span>
            {position}
          </h2>
        </header>
        <div className="drawer-body">
          <MarkdownText text={question.question} />
          {options.length > 0 && (
            <fieldset className="stack">
              <legend className="only-read">{multiple ? "Choose one or more" : "Choose one"}</legend>
              {options.map((option) => (
                <label key={option} className="option">
                  <input
                    type={multiple ? "checkbox" : "radio"}
                    name={heading}
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
            <label className="stack">
              {options.length > 0 ? "In your own words" : "Your reply"}
              <textarea rows={2} value={text} disabled={off} onChange={(event) => setText(event.target.value)} />
            </label>
          )}
        </div>
        <footer className="drawer-foot">
          {action.error !== null && <Failure error={action.error} />}
          <div className="row drawer-buttons">
            <button type="submit" className="primary" disabled={off || empty}>
              Reply
            </button>
            <button type="button" disabled={off} onClick={() => guard() && reply(true)}>
              Dismiss
            </button>
          </div>
        </footer>
      </form>
    </section>
  );
}
