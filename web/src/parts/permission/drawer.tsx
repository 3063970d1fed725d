/** One request with its answers. It never takes the focus; its keys act only with the focus inside. */

import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { request as call, RequestFailure } from "../../api/client";
import type { AnswerOutcome, NewAnswer, PermissionRequest, RequestDetail } from "../../api/types";
import { useAction } from "../../state/action";
import { useConsole } from "../../state/console";
import { useResource } from "../../state/resource";
import { canApprove, describeAnswer, describeSubject, hasRun, nameTool } from "../../text/permission";
import { Failure } from "../states";
import { CommandEditor, GrantChooser, ReasonForm } from "./forms";
import { useGuard } from "./guard";
import { RequestView } from "./request_view";
import "./permission.css";

export interface DrawerProps {
  request: PermissionRequest;
  /** `Permission 1 of 2`, if there are several. */
  position?: string;
  offline: boolean;
  mayAnswer: boolean;
  onAnswered: (outcome: AnswerOutcome) => void;
  /** An answer is on its way. Its event may come before its response. */
  onSending?: (subject: string) => void;
  /** The request was answered somewhere else meanwhile. */
  onGone?: (subject: string) => void;
  /** A retry or an edit gave the request a new revision. */
  onRevised?: (detail: RequestDetail) => void;
  extra?: ReactNode;
}

/** How often the files of a preview are checked for changes of others. */
const CHECK_EVERY_MS = 10_000;

type Panel = "reason" | "grants" | "edit" | null;

export function PermissionDrawer(props: DrawerProps) {
  const { position = "Permission", offline, mayAnswer, extra } = props;
  const [revised, setRevised] = useState<PermissionRequest | null>(null);
  const request = newer(props.request, revised);
  const subject = `${request.id} ${request.revision ?? 0}`;
  const ran = hasRun(request);
  const detail = useResource(
    `request ${subject}`,
    (signal) => call("GET /api/requests/{request}", { params: { request: request.id }, signal }),
    ran ? { every: CHECK_EVERY_MS } : {},
  );
  const outdated = detail.data?.outdated ?? [];
  const answers = useAnswers(request, props, setRevised, () => detail.reload());
  const [panel, setPanel] = useState<Panel>(null);
  const [scope, setScope] = useState<"session" | "workspace">("session");
  const heading = useId();
  const reading = useReading(subject);
  const guard = useGuard(subject);
  const off = offline || answers.action.busy || !mayAnswer;
  const offKeep = off || outdated.length > 0 || !reading.done || !canApprove(request);
  const has = (kind: NewAnswer["kind"]) => request.answers.includes(kind);
  const grants = request.grants ?? [];

  const deliberate = (act: () => void) => () => {
    if (guard()) act();
  };
  const keep = deliberate(() => !offKeep && has("once") && answers.give({ kind: "once" }));
  const keepFor = (kind: "session" | "workspace") =>
    deliberate(() => {
      if (offKeep || !has(kind)) return;
      if (grants.length === 1) answers.give({ kind, grants });
      else {
        setScope(kind);
        setPanel("grants");
      }
    });
  const output = deliberate(() => !off && has("output") && answers.give({ kind: "output" }));
  const retry = deliberate(() => !off && request.command != null && answers.retry(null));
  const keys: Readonly<Record<string, () => void>> = {
    y: keep,
    s: keepFor("session"),
    w: keepFor("workspace"),
    a: deliberate(() => !offKeep && has("edits") && answers.give({ kind: "edits" })),
    n: deliberate(() => !off && setPanel("reason")),
    o: output,
    e: deliberate(() => !off && request.command != null && setPanel("edit")),
    r: retry,
  };
  const press = (event: KeyboardEvent) => {
    const typing = event.target instanceof HTMLElement && ["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName);
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const act = keys[event.key];
    if (act === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };

  return (
    // The keys of the drawer act only while the focus is in it.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <section className="drawer" aria-labelledby={heading} tabIndex={-1} onKeyDown={press} data-request={request.id}>
      <header className="drawer-head">
        <h2 id={heading}>
          <span className="warn" aria-hidden="true">
            !{" "}
          </span>
          {position} · {nameTool(request)}
        </h2>
        {extra}
      </header>
      <div className="drawer-body">
        <RequestView request={request} outdated={outdated} command={reading.box} onScroll={reading.look} />
      </div>
      <footer className="drawer-foot">
        {answers.action.error !== null && <Failure error={answers.action.error} />}
        {!reading.done && <p className="note">Scroll to the end of the command first.</p>}
        {panel === "reason" && (
          <ReasonForm
            verb={ran ? "Drop" : "Reject"}
            off={off}
            onSend={(reason) => answers.give({ kind: "deny", reason })}
            onClose={() => setPanel(null)}
          />
        )}
        {panel === "grants" && (
          <GrantChooser
            request={request}
            scope={scope}
            off={offKeep}
            verb={ran ? "Keep" : "Approve"}
            onSend={(answer) => answers.give(answer)}
            onClose={() => setPanel(null)}
          />
        )}
        {panel === "edit" && (
          <CommandEditor
            command={request.command ?? ""}
            off={off}
            onSend={(command) => answers.retry(command, () => setPanel(null))}
            onClose={() => setPanel(null)}
          />
        )}
        {panel === null && mayAnswer && (
          <div className="row drawer-buttons">
            {has("once") && (
              <button type="button" className="primary" disabled={offKeep} onClick={keep} aria-keyshortcuts="y">
                {ran ? "Keep" : "Approve"} <kbd aria-hidden="true">y</kbd>
              </button>
            )}
            {(has("session") || has("workspace") || has("edits")) && (
              <button type="button" disabled={offKeep} onClick={deliberate(() => setPanel("grants"))} aria-keyshortcuts="s w">
                {ran ? "Keep" : "Approve"} and allow ▾
              </button>
            )}
            <button type="button" disabled={off} onClick={deliberate(() => setPanel("reason"))} aria-keyshortcuts="n">
              {ran ? "Drop…" : "Reject…"} <kbd aria-hidden="true">n</kbd>
            </button>
            {has("output") && (
              <button type="button" disabled={off} onClick={output} aria-keyshortcuts="o" title="Drops the changes, shows the model the output">
                Output only <kbd aria-hidden="true">o</kbd>
              </button>
            )}
            {request.command != null && (
              <button type="button" disabled={off} onClick={deliberate(() => setPanel("edit"))} aria-keyshortcuts="e">
                Edit <kbd aria-hidden="true">e</kbd>
              </button>
            )}
            {request.command != null && (outdated.length > 0 || request.preview?.tried == null || request.preview.tried.exitCode !== 0) && (
              <button type="button" disabled={off} onClick={retry} aria-keyshortcuts="r">
                Try again <kbd aria-hidden="true">r</kbd>
              </button>
            )}
            {answers.action.busy && (
              <span className="note" role="status">
                {answers.doing}
              </span>
            )}
          </div>
        )}
        {!mayAnswer && <p className="note">Your token may only watch. Somebody else has to answer.</p>}
      </footer>
    </section>
  );
}

/** The newer one of two revisions of a request. */
function newer(request: PermissionRequest, revised: PermissionRequest | null): PermissionRequest {
  if (revised === null || revised.id !== request.id) return request;
  return (revised.revision ?? 0) > (request.revision ?? 0) ? revised : request;
}

function useAnswers(
  request: PermissionRequest,
  { onAnswered, onSending, onGone, onRevised }: DrawerProps,
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
      onRevised?.(detail);
      announce("There is a new preview.");
      done?.();
    });
  };
  return { action, doing, give, retry };
}

/** Whether somebody else answered first. */
function isGone(error: unknown): boolean {
  if (!(error instanceof RequestFailure)) return false;
  const details = error.details;
  return error.status === 404 || (error.status === 409 && typeof details === "object" && details !== null && "answer" in details);
}

/** Whether the whole command was on the screen. A long one has to be scrolled to its end. */
function useReading(subject: string) {
  const box = useRef<HTMLPreElement>(null);
  const [read, setRead] = useState<string | null>(null);
  const look = () => {
    const element = box.current;
    if (element === null || element.scrollHeight - element.scrollTop - element.clientHeight < 4) setRead(subject);
  };
  const latest = useRef(look);
  useEffect(() => {
    latest.current = look;
  });
  useEffect(() => {
    const frame = window.requestAnimationFrame(() => latest.current());
    const resized = () => latest.current();
    window.addEventListener("resize", resized);
    return () => {
      window.cancelAnimationFrame(frame);
      window.removeEventListener("resize", resized);
    };
  }, [subject]);
  return { box, look, done: read === subject };
}
