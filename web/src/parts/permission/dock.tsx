/** What waits in a task, docked below its conversation. */

import { type RefObject, useEffect, useRef, useState } from "react";
import type { AnswerOutcome } from "../../api/types";
import type { Call } from "../../state/conversation";
import { useConsole } from "../../state/console";
import { useKeys } from "../../state/keys";
import { describeSubject, nameTool } from "../../text/permission";
import { Output } from "../output";
import { Visible } from "../text";
import { PermissionDrawer } from "./drawer";
import { QuestionForm } from "./question";
import "./permission.css";

interface Props {
  task: string;
  waiting: readonly Call[];
  /** Output of previews that run, by call. */
  previews: ReadonlyMap<string, string>;
  offline: boolean;
  mayAnswer: boolean;
  /** When the turn was stopped here, which takes its requests away. */
  stoppedAt: RefObject<number>;
  /** Names the request or question that was answered here. */
  onAnswered: (subject: string) => void;
}

/** How long after a stop its requests may go away. */
const STOP_MS = 5_000;

interface Gone {
  id: string;
  text: string;
}

export function Dock({ waiting, previews, offline, mayAnswer, stoppedAt, onAnswered }: Props) {
  const [folded, setFolded] = useState(false);
  const [chosen, setChosen] = useState<string | null>(null);
  const [mine, setMine] = useState<ReadonlySet<string>>(new Set());
  const root = useRef<HTMLDivElement>(null);
  const shown = waiting.filter((call) => !mine.has(subjectOf(call)));
  const current = shown.find((call) => call.id === chosen) ?? shown[0];
  // Its event may take the request away before the response comes.
  const wasInside = useRef(false);
  const sent = useRef(new Set<string>());
  const [gone, forget] = useElsewhere(waiting, sent, stoppedAt);
  useAnnouncement(current);
  useKeys({ ".": () => root.current?.querySelector<HTMLElement>(".drawer")?.focus() }, current !== undefined && !folded);

  const answered = (outcome: AnswerOutcome) => {
    setMine((before) => new Set(before).add(outcome.subject));
    onAnswered(outcome.subject);
    if (wasInside.current) returnFocus(root.current, shown.some((call) => subjectOf(call) !== outcome.subject));
  };
  const place = current === undefined ? 0 : shown.indexOf(current);
  const position = (noun: string) => (shown.length > 1 ? `${noun} ${place + 1} of ${shown.length}` : noun);
  return (
    <div ref={root} className="dock" tabIndex={-1}>
      {gone.map((one) => (
        <p key={one.id} className="dock-line" role="status">
          ⊘ Answered elsewhere: <Visible text={one.text} />
          <button type="button" className="quiet end" onClick={() => forget(one.id)}>
            OK
          </button>
        </p>
      ))}
      {Array.from(previews, ([id, output]) => (
        <div key={id} className="dock-line" role="status">
          ● Running it in a disposable copy … Your files are untouched.
          <Output text={output} live />
        </div>
      ))}
      {current !== undefined && folded && (
        <p className="dock-line">
          ! {shown.length === 1 ? "1 request waits" : `${shown.length} requests wait`} for you.
          <button type="button" className="end" onClick={() => setFolded(false)}>
            Show
          </button>
        </p>
      )}
      {current !== undefined && !folded && (
        <DockedCall
          key={current.id}
          call={current}
          position={position}
          offline={offline}
          mayAnswer={mayAnswer}
          onAnswered={answered}
          onSending={(subject) => {
            sent.current.add(subject);
            wasInside.current = root.current?.contains(document.activeElement) ?? false;
          }}
          onGone={(subject) => sent.current.delete(subject)}
          onLater={() => setFolded(true)}
          onOther={shown.length > 1 ? (step) => setChosen(shown[(place + step + shown.length) % shown.length]?.id ?? null) : null}
        />
      )}
    </div>
  );
}

interface DockedProps {
  call: Call;
  position: (noun: string) => string;
  offline: boolean;
  mayAnswer: boolean;
  onAnswered: (outcome: AnswerOutcome) => void;
  onSending: (subject: string) => void;
  onGone: (subject: string) => void;
  onLater: () => void;
  onOther: ((step: number) => void) | null;
}

function DockedCall({ call, position, onLater, onOther, onGone, ...rest }: DockedProps) {
  const extra = (
    <span className="row end">
      {onOther !== null && (
        <>
          <button type="button" className="quiet" onClick={() => onOther(-1)} aria-label="Previous request">
            ‹
          </button>
          <button type="button" className="quiet" onClick={() => onOther(1)} aria-label="Next request">
            ›
          </button>
        </>
      )}
      <button type="button" className="quiet" onClick={onLater} title="It stays in the inbox">
        Later
      </button>
    </span>
  );
  if (call.question !== null && call.state === "asking") {
    return (
      <QuestionForm question={call.question} position={position("Question")} {...rest} />
    );
  }
  if (call.request === null) return null;
  return (
    <PermissionDrawer
      request={call.request}
      position={position("Permission")}
      onGone={onGone}
      extra={extra}
      {...rest}
    />
  );
}

function subjectOf(call: Call): string {
  return call.request?.id ?? call.id;
}

function nameCall(call: Call): string {
  return call.request === null ? (call.question?.question ?? call.name) : describeSubject(call.request);
}

/** Requests that went away although this window sent no answer. */
function useElsewhere(waiting: readonly Call[], sent: RefObject<Set<string>>, stoppedAt: RefObject<number>): [readonly Gone[], (id: string) => void] {
  const before = useRef<ReadonlyMap<string, Gone>>(new Map());
  const [gone, setGone] = useState<readonly Gone[]>([]);
  useEffect(() => {
    const now = new Map(waiting.map((call) => [subjectOf(call), { id: subjectOf(call), text: nameCall(call) }]));
    const left = Array.from(before.current.values()).filter((one) => !now.has(one.id) && !sent.current.has(one.id));
    before.current = now;
    // What happened elsewhere is known only by comparing with what was here before.
     
    if (left.length > 0 && performance.now() - stoppedAt.current > STOP_MS) setGone((known) => [...known, ...left]);
  }, [waiting, sent, stoppedAt]);
  return [gone, (id) => setGone((known) => known.filter((one) => one.id !== id))];
}

/** Says it once to screen readers. */
function useAnnouncement(current: Call | undefined): void {
  const { announce } = useConsole();
  const id = current?.id;
  const text = current === undefined ? "" : current.request === null ? "A question waits for you." : `Permission needed for ${nameTool(current.request)}: ${describeSubject(current.request)}`;
  useEffect(() => {
    if (id !== undefined) announce(text);
  }, [id, text, announce]);
}

/** After an answer the focus stays near: at the next request, else at the conversation. */
function returnFocus(root: HTMLElement | null, more: boolean): void {
  window.requestAnimationFrame(() => {
    const target = more ? root?.querySelector<HTMLElement>(".drawer") : document.querySelector<HTMLElement>(".items");
    (target ?? root)?.focus();
  });
}
