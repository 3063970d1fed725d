/** What waits in a task, docked below its conversation. */

import { type RefObject, useEffect, useRef, useState } from "react";
import { answeredHere } from "../../state/answered";
import type { Call } from "../../state/conversation";
import { useConsole } from "../../state/console";
import { useKeys } from "../../state/keys";
import { describeSubject, nameTool } from "../../text/permission";
import { Output } from "../output";
import { Visible } from "../text";
import { PermissionDrawer } from "./drawer";
import type { Answering } from "./frame";
import { QuestionForm } from "./question";

interface Props {
  waiting: readonly Call[];
  /** Output of previews that run, by call. */
  previews: ReadonlyMap<string, string>;
  offline: boolean;
  /** When the turn was stopped here, which takes its requests away. */
  stoppedAt: RefObject<number>;
}

/** How long after a stop its requests may go away. */
const STOP_MS = 5_000;

interface Gone {
  id: string;
  text: string;
}

export function Dock({ waiting, previews, offline, stoppedAt }: Props) {
  const [folded, setFolded] = useState(false);
  const [chosen, setChosen] = useState<string | null>(null);
  const [mine, setMine] = useState<ReadonlySet<string>>(new Set());
  const root = useRef<HTMLDivElement>(null);
  const shown = waiting.filter((call) => !mine.has(subjectOf(call)));
  const current = shown.find((call) => call.id === chosen) ?? shown[0];
  // Its event may take the request away before the response comes.
  const wasInside = useRef(false);
  const [gone, forget] = useElsewhere(waiting, stoppedAt);
  useAnnouncement(current);
  useKeys({ ".": () => root.current?.querySelector<HTMLElement>(".drawer")?.focus() }, current !== undefined && !folded);

  const place = current === undefined ? 0 : shown.indexOf(current);
  const other = (step: number, sign: string, name: string) => (
    <button type="button" className="quiet" aria-label={name} onClick={() => setChosen(shown.at((place + step) % shown.length)?.id ?? null)}>
      {sign}
    </button>
  );
  const answering: Answering = {
    position: shown.length > 1 ? ` ${place + 1} of ${shown.length}` : "",
    offline,
    extra: (
      <span className="row end">
        {shown.length > 1 && other(-1, "‹", "Previous request")}
        {shown.length > 1 && other(1, "›", "Next request")}
        <button type="button" className="quiet" onClick={() => setFolded(true)} title="It stays in the inbox">
          Later
        </button>
      </span>
    ),
    onAnswered: ({ subject }) => {
      setMine((before) => new Set(before).add(subject));
      if (wasInside.current) returnFocus(root.current, shown.some((call) => subjectOf(call) !== subject));
    },
    onSending: (subject) => {
      answeredHere.add(subject);
      wasInside.current = root.current?.contains(document.activeElement) ?? false;
    },
    onGone: (subject) => answeredHere.delete(subject),
  };
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
      {current !== undefined && !folded && <DockedCall key={current.id} call={current} answering={answering} />}
    </div>
  );
}

function DockedCall({ call, answering }: { call: Call; answering: Answering }) {
  if (call.question !== null && call.state === "asking") return <QuestionForm question={call.question} {...answering} />;
  return call.request !== null && <PermissionDrawer request={call.request} {...answering} />;
}

function subjectOf(call: Call): string {
  return call.request?.id ?? call.id;
}

function nameCall(call: Call): string {
  return call.request === null ? (call.question?.question ?? call.name) : describeSubject(call.request);
}

/** Requests that went away although this window sent no answer. */
function useElsewhere(waiting: readonly Call[], stoppedAt: RefObject<number>): [readonly Gone[], (id: string) => void] {
  const before = useRef<ReadonlyMap<string, Gone>>(new Map());
  const [gone, setGone] = useState<readonly Gone[]>([]);
  useEffect(() => {
    const now = new Map(waiting.map((call) => [subjectOf(call), { id: subjectOf(call), text: nameCall(call) }]));
    const left = Array.from(before.current.values()).filter((one) => !now.has(one.id) && !answeredHere.has(one.id));
    before.current = now;
    // What happened elsewhere is known only by comparing with what was here before.
    if (left.length > 0 && performance.now() - stoppedAt.current > STOP_MS) setGone((known) => [...known, ...left]);
  }, [waiting, stoppedAt]);
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
