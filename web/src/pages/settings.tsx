/** The settings in force with their sources, the theme, the caller. */

import { useState } from "react";
import { logout, request } from "../api/client";
import { Choice, WorkspaceSelect } from "../parts/split";
import { type Column, Table } from "../parts/table";
import { Empty, Loaded } from "../parts/states";
import { Visible } from "../parts/text";
import { useConsole } from "../state/console";
import { useResource } from "../state/resource";
import { chooseTheme, type Theme, useTheme } from "../state/theme";

interface Setting {
  key: string;
  value: unknown;
  source: string;
  help: string;
  allowed: string;
}

interface Settings {
  settings: readonly Setting[];
  rules: readonly unknown[];
  notes: readonly string[];
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "as the system"],
  ["light", "light"],
  ["dark", "dark"],
];
const ROLES = { viewer: "may look", operator: "may work and answer", admin: "may do everything" } as const;

export default function SettingsPage() {
  const { info } = useConsole();
  const theme = useTheme();
  const [workspace, setWorkspace] = useState(info.workspaces[0] ?? "");
  const settings = useResource(`settings ${workspace}`, async (signal) => (await request("GET /api/settings", { query: { workspace }, signal })) as unknown as Settings);
  return (
    <div className="page">
      <h1>Settings</h1>
      <section className="stack" aria-label="This console">
        <p className="row">
          Signed in as <b>{info.caller.name}</b>
          <span className="muted">{info.caller.role}: {ROLES[info.caller.role]}</span>
          <button type="button" onClick={() => void logout().finally(() => window.location.assign("/"))}>Sign out</button>
        </p>
        <p className="row">
          Colours <Choice label="Theme" value={theme} options={THEMES} onChange={(value) => chooseTheme(value as Theme)} />
        </p>
        <p className="muted">
          handrail {info.version}. Models: {info.models.join(", ") || "none"}. Workspaces: <Visible text={info.workspaces.join(", ")} />. Calls without a model:{" "}
          {info.directCalls ? "allowed" : "not allowed"}.
        </p>
      </section>
      <Loaded from={settings}>{(data) => <SettingsTable data={data} chooser={<WorkspaceSelect value={workspace} onChange={setWorkspace} />} />}</Loaded>
    </div>
  );
}

const COLUMNS: readonly Column[] = [["Setting"], ["Value", "mono subject setting-value"], ["From", "subject"]];

function SettingsTable({ data, chooser }: { data: Settings; chooser: React.ReactNode }) {
  const [text, setText] = useState("");
  const [changed, setChanged] = useState(false);
  const wanted = text.toLowerCase();
  const listed = data.settings.filter(
    (one) => `${one.key} ${one.help} ${one.source}`.toLowerCase().includes(wanted) && (!changed || one.source !== "default"),
  );
  return (
    <section className="stack" aria-labelledby="settings-heading">
      <h2 id="settings-heading">In force</h2>
      <p className="note">Settings are files. The console shows them and does not write them.</p>
      {data.notes.map((note) => <p key={note} className="warn">! <Visible text={note} /></p>)}
      <div className="filters">
        {chooser}
        <input type="search" aria-label="Filter settings" placeholder="Filter" value={text} onChange={(event) => setText(event.target.value)} />
        <label className="row">
          <input type="checkbox" checked={changed} onChange={(event) => setChanged(event.target.checked)} />
          only those that were set
        </label>
      </div>
      {listed.length === 0 ? <Empty>No setting fits the filter.</Empty> : (
        <Table columns={COLUMNS} rows={listed.map((one) => ({ key: one.key, cells: listCells(one) }))} />
      )}
      <h2>Rules {data.rules.length}</h2>
      {data.rules.length === 0 ? <p className="muted">No rules besides the built-in ones.</p> : (
        <ul className="plain-list">
          {data.rules.map((rule, place) => <li key={place} className="mono subject"><Visible text={describeRule(rule)} /></li>)}
        </ul>
      )}
    </section>
  );
}

function listCells({ key, value, source, help, allowed }: Setting): readonly React.ReactNode[] {
  const title = (
    <>
      <code>{key}</code>
      <br />
      <span className="note" title={`Allowed: ${allowed}`}>{help}</span>
    </>
  );
  const shown = value === null ? "–" : typeof value === "string" ? value : JSON.stringify(value);
  return [title, <Visible key="value" text={shown} />, source === "default" ? <span className="muted">default</span> : <Visible key="source" text={source} />];
}

/** What a rule has besides its empty fields. */
function describeRule(rule: unknown): string {
  if (typeof rule !== "object" || rule === null) return JSON.stringify(rule);
  const parts = Object.entries(rule).filter(([, value]) => value !== "" && value !== false && !(Array.isArray(value) && value.length === 0));
  return parts.map(([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(" · ");
}
