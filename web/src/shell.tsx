/** The frame around every page: rail, keys, what is announced. */

import { Component, type ReactNode, Suspense, type SyntheticEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { logout } from "./api/client";
import type { ServerInfo } from "./api/types";
import { PAGES } from "./pages";
import { Icon } from "./parts/icons";
import { KeyHelp } from "./parts/key_help";
import { Failure, Skeleton } from "./parts/states";
import { Link, navigate, pathTo, useAddress } from "./router";
import { ConsoleContext } from "./state/console";
import { type KeyTable, useKeys } from "./state/keys";
import { useRoute } from "./state/resource";
import { focusNeighbour } from "./state/focus";
import { chooseTheme, type Theme, useTheme } from "./state/theme";

const INBOX_EVERY_MS = 4000;
const NEXT_THEME: Readonly<Record<Theme, Theme>> = { system: "dark", dark: "light", light: "system" };

const FILE_KEYS: KeyTable = {
  "]": () => focusNeighbour(".diff-file > summary", 1),
  "[": () => focusNeighbour(".diff-file > summary", -1),
};

export function Shell({ info, onSignOut }: { info: ServerInfo; onSignOut: () => void }) {
  const { parts, query } = useAddress();
  const [help, setHelp] = useState(false);
  const [open, setOpen] = useState(false);
  const [said, setSaid] = useState("");
  const [subject, setSubject] = useState("");
  const inbox = useRoute("GET /api/inbox", {}, { every: INBOX_EVERY_MS });
  const waiting = countWaiting(inbox.data);
  const announce = useCallback((text: string) => setSaid(text), []);
  const value = useMemo(() => ({ info, inbox, announce, setSubject }), [info, inbox, announce]);

  const name = parts[0] ?? "tasks";
  const page = PAGES.find((one) => one.name === name);
  const main = useRef<HTMLElement>(null);
  const skip = (event: SyntheticEvent) => {
    event.preventDefault();
    main.current?.focus();
  };
  useTitle(subject === "" ? (page?.title ?? "") : subject, waiting);
  useNewRequests(waiting, announce);
  useKeys(
    useMemo<KeyTable>(() => {
      const goTo = PAGES.map((one) => [`g ${one.key}`, () => navigate(pathTo(one.name))] as const);
      return { ...Object.fromEntries(goTo), "?": () => setHelp(true), "ctrl+k": () => navigate(pathTo("tools")), ...FILE_KEYS };
    }, []),
  );

  const view = page === undefined ? <NotFound /> : <page.view key={page.name} parts={parts.slice(1)} query={query} />;
  return (
    <ConsoleContext value={value}>
      <div className={open ? "shell open" : "shell"}>
        <a className="skip" href="#main" onClick={skip}>
          Skip to the page
        </a>
        <header className="topbar">
          <button type="button" className="quiet" aria-expanded={open} aria-controls="rail" onClick={() => setOpen(!open)}>
            <Icon name={open ? "close" : "menu"} />
            <span className="only-read">Menu</span>
          </button>
          <span className="brand">{page?.title ?? "handrail"}</span>
          {waiting > 0 && (
            <Link to="/inbox" className="badge">
              {waiting} waiting
            </Link>
          )}
        </header>
        <Rail
          info={info}
          current={name}
          waiting={waiting}
          onFollow={() => setOpen(false)}
          onHelp={() => setHelp(true)}
          onSignOut={() => void logout().finally(onSignOut)}
        />
        <main id="main" ref={main} tabIndex={-1}>
          <PageBoundary key={name}>
            <Suspense fallback={<div className="page"><Skeleton /></div>}>{view}</Suspense>
          </PageBoundary>
        </main>
        <div className="only-read" aria-live="polite">
          {said}
        </div>
        {help && <KeyHelp onClose={() => setHelp(false)} />}
      </div>
    </ConsoleContext>
  );
}

function countWaiting(inbox: { requests: readonly { state: string }[]; questions: readonly unknown[] } | undefined): number {
  if (inbox === undefined) return 0;
  return inbox.requests.filter((one) => one.state === "waiting").length + inbox.questions.length;
}

function useTitle(subject: string, waiting: number): void {
  useEffect(() => {
    const count = waiting > 0 ? `(${waiting}) ` : "";
    document.title = `${count}${subject === "" ? "" : `${subject} · `}handrail`;
  }, [subject, waiting]);
}

function useNewRequests(waiting: number, announce: (text: string) => void): void {
  const before = useRef(0);
  useEffect(() => {
    if (waiting > before.current) announce(waiting === 1 ? "1 request waits for you." : `${waiting} requests wait for you.`);
    before.current = waiting;
  }, [waiting, announce]);
}

interface RailProps {
  info: ServerInfo;
  current: string;
  waiting: number;
  onFollow: () => void;
  onHelp: () => void;
  onSignOut: () => void;
}

function Rail({ info, current, waiting, onFollow, onHelp, onSignOut }: RailProps) {
  const theme = useTheme();
  return (
    <nav id="rail" className="rail" aria-label="Pages">
      <Link to="/tasks" className="brand" onClick={onFollow}>
        handrail
      </Link>
      <ul>
        {PAGES.map((page) => (
          <li key={page.name}>
            <Link
              to={pathTo(page.name)}
              aria-current={page.name === current ? "page" : undefined}
              title={`g ${page.key}`}
              onClick={onFollow}
            >
              <Icon name={page.name} />
              <span>{page.title}</span>
              {page.name === "inbox" && waiting > 0 && (
                <span className="badge">
                  {waiting}
                  <span className="only-read"> waiting</span>
                </span>
              )}
            </Link>
          </li>
        ))}
      </ul>
      <div className="rail-foot">
        <button type="button" className="quiet" onClick={() => chooseTheme(NEXT_THEME[theme])}>
          Theme: {theme}
        </button>
        <button type="button" className="quiet" onClick={onHelp}>
          Keys <kbd aria-hidden="true">?</kbd>
        </button>
        <button type="button" className="quiet" onClick={onSignOut}>
          Sign out
        </button>
        <p className="muted">
          {info.caller.name} · {info.caller.role}
          <br />
          {info.version}
        </p>
      </div>
    </nav>
  );
}

function NotFound() {
  return (
    <div className="page">
      <h1>Not found</h1>
      <p>
        There is no such page. <Link to="/tasks">Show the tasks</Link>
      </p>
    </div>
  );
}

/** A defect in one page leaves the others usable. */
class PageBoundary extends Component<{ children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="page">
        <h1>This page failed</h1>
        <Failure error={this.state.error} retry={() => window.location.reload()} />
      </div>
    );
  }
}
