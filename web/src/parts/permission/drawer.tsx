/** One request with its answers. Its keys act only with the focus inside. */

import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { request as call, RequestFailure } from "../../api/client";
import type { NewAnswer, PermissionRequest } from "../../api/types";
import { useAction } from "../../state/action";
import { useConsole, useMayOperate } from "../../state/console";
import { useWindowEvent } from "../../state/events";
import { isTyping, nameKey } from "../../state/keys";
import { useResource } from "../../state/resource";
import { asRecord } from "../../text/json";
import { canApprove, describeAnswer, describeSubject, hasRun, nameTool } from "../../text/permission";
import { CommandEditor, GrantChooser, ReasonForm } from "./forms";
import { type Answering, Frame } from "./frame";
import { useGuard } from "./guard";
import { RequestView } from "./request_view";

/** How often the files of a preview are checked for changes of others. */
const CHECK_EVERY_MS = 10_000;

type Panel = "reason" | "session" | "workspace" | "edit" | null;

/** An answer, or what leads to one. */
interface Choice {
  /** Its key. Several: those of the choices behind it. */
  keys: string;
  /** Absent: it has only a key. */
  text?: string | false;
  title?: string;
  off: boolean;
  act: () => void;
}

export function PermissionDrawer(props: Answering & { request: PermissionRequest }) {
  const { position = "", offline, extra } = props;
  const [revised, setRevised] = useState<PermissionRequest | null>(null);
  const request = newer(props.request, revised);
  const subject = `${request.id} ${request.revision ?? 0}`;
  const ran = hasRun(request);
  const load = (signal: AbortSignal) => call("GET /api/requests/{request}", { params: { request: request.id }, signal });
  const detail = useResource(`request ${subject}`, load, ran ? { every: CHECK_EVERY_MS } : {});
  const outdated = detail.data?.outdated ?? [];
  const { action, doing, give, retry } = useAnswers(request, props, setRevised, detail.reload);
  const [panel, setPanel] = useState<Panel>(null);
  const reading = useReading(subject);
  const guard = useGuard(subject);
  const mayAnswer = useMayOperate();
  const off = offline || action.busy || !mayAnswer;
  const offKeep = off || outdated.length > 0 || !reading.done || !canApprove(request);
  const has = (kind: NewAnswer["kind"]) => request.answers.includes(kind);
  const [keep, drop] = ran ? (["Keep", "Drop"] as const) : (["Approve", "Reject"] as const);
  const isCommand = request.command != null;
  const mayFail = outdated.length > 0 || request.preview?.tried?.exitCode !== 0;
  const keepFor = (kind: "session" | "workspace") => () => {
    const { grants = [] } = request;
    if (grants.length === 1) give({ kind, grants });
    else setPanel(kind);
  };
  const choices: readonly Choice[] = [
    { keys: "y", text: has("once") && keep, off: offKeep || !has("once"), act: () => give({ kind: "once" }) },
    { keys: "s w", text: (has("session") || has("workspace") || has("edits")) && `${keep} and allow ▾`, off: offKeep, act: () => setPanel("session") },
    { keys: "s", off: offKeep || !has("session"), act: keepFor("session") },
    { keys: "w", off: offKeep || !has("workspace"), act: keepFor("workspace") },
    { keys: "a", off: offKeep || !has("edits"), act: () => give({ kind: "edits" }) },
    { keys: "n", text: `${drop}…`, off, act: () => setPanel("reason") },
    {
      keys: "o",
      text: has("output") && "Output only",
      title: "Drops the changes, shows the model the output",
      off: off || !has("output"),
      act: () => give({ kind: "output" }),
    },
    { keys: "e", text: isCommand && "Edit", off: off || !isCommand, act: () => setPanel("edit") },
    { keys: "r", text: isCommand && mayFail && "Try again", off: off || !isCommand, act: () => retry(null) },
  ];
  const choose = (choice: Choice | undefined) => {
    if (choice?.off === false && guard()) choice.act();
  };
  const press = (event: KeyboardEvent) => {
    const choice = choices.find((one) => one.keys === nameKey(event));
    if (choice === undefined || event.repeat || isTyping(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
    choose(choice);
  };
  const close = () => setPanel(null);
  const foot = (
    <>
      {!reading.done && <p className="note">Scroll to the end of the command first.</p>}
      {panel === "reason" && <ReasonForm verb={drop} off={off} onSend={(reason) => give({ kind: "deny", reason })} onClose={close} />}
      {(panel === "session" || panel === "workspace") && (
        <GrantChooser request={request} scope={panel} off={offKeep} verb={keep} onSend={give} onClose={close} />
      )}
      {panel === "edit" && <CommandEditor command={request.command ?? ""} off={off} onSend={(command) => retry(command, close)} onClose={close} />}
      {panel === null && mayAnswer && (
        <div className="row drawer-buttons">
          {choices.map(
            (choice) =>
              typeof choice.text === "string" && (
                <button
                  key={choice.keys}
                  type="button"
                  className={choice.keys === "y" ? "primary" : undefined}
                  title={choice.title}
                  disabled={choice.off}
                  aria-keyshortcuts={choice.keys}
                  onClick={() => choose(choice)}
                >
                  {choice.text} {choice.keys.length === 1 && <kbd aria-hidden="true">{choice.keys}</kbd>}
                </button>
              ),
          )}
          {action.busy && (
            <span className="note" role="status">
              {doing}
            </span>
          )}
        </div>
      )}
      {!mayAnswer && <p className="note">Your token may only watch. Somebody else has to answer.</p>}
    </>
  );
  return (
    <Frame
      sign="!"
      title={`Permission${position} · ${nameTool(request)}`}
      extra={extra}
      error={action.error}
      subject={request.id}
      foot={foot}
      onKeyDown={press}
    >
      <RequestView request={request} outdated={outdated} command={reading.box} onScroll={reading.look} />
    </Frame>
  );
}

/** The newer one of two revisions of a request. */
function newer(request: PermissionRequest, revised: PermissionRequest | null): PermissionRequest {
  if (revised === null || revised.id !== request.id) return request;
  return (revised.revision ?? 0) > (request.revision ?? 0) ? revised : request;
}

function useAnswers(
  request: PermissionRequest,
  { onAnswered, onSending, onGone }: Answering,
  setRevised: (request: PermissionRequest) => void,
  reload: () => void,
) {
  const action = useAction();
  const [doing, setDoing] = useState("");
  const { announce, inbox } = useConsole();
  const params = { request: request.id };
  const give = (answer: Omit<NewAnswer, "revision">) => {
    setDoing("Answering …");
    action.run(async () => {
      try {
        const body = { ...answer, revision: request.revision ?? 0 };
        onSending?.(request.id);
        const outcome = await call("POST /api/requests/{request}/answer", { params, body });
        announce(`You ${describeAnswer(answer.kind, hasRun(request))} ${describeSubject(request)}`);
        onAnswered(outcome);
      } catch (error) {
        if (isGone(error)) onGone?.(request.id);
        else reload();
        throw error;
      } finally {
        inbox.reload();
      }
    });
  };
  const retry = (command: string | null, done?: () => void) => {
    setDoing("Running it in a disposable copy … Your files are untouched.");
    action.run(async () => {
      const detail = await call("POST /api/requests/{request}/retry", { params, body: { command } });
      setRevised(detail.waiting.request);
      announce("There is a new preview.");
      done?.();
    });
  };
  return { action, doing, give, retry };
}

/** Whether somebody else answered first. */
function isGone(error: unknown): boolean {
  if (!(error instanceof RequestFailure)) return false;
  return error.status === 404 || (error.status === 409 && "answer" in asRecord(error.details));
}

/** Whether the whole command was on the screen. A long one has to be scrolled to its end. */
function useReading(subject: string) {
  const box = useRef<HTMLPreElement>(null);
  const [read, setRead] = useState<string | null>(null);
  const look = () => {
    const element = box.current;
    if (element === null || element.scrollHeight - element.scrollTop - element.clientHeight < 4) setRead(subject);
  };
  useWindowEvent("resize", look);
  useEffect(() => {
    const frame = window.requestAnimationFrame(look);
    return () => window.cancelAnimationFrame(frame);
    // Once for each revision.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [subject]);
  return { box, look, done: read === subject };
}
