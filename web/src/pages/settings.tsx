/** The settings in force with their sources, the theme, the caller. */

import { useState } from "react";
import { logout } from "../api/client";
import { CheckBox, Choice, SearchField, WorkspaceSelect } from "../parts/fields";
import { type Column, Table } from "../parts/table";
import { Empty, Loaded } from "../parts/states";
import { Visible, Warnings } from "../parts/text";
import { useConsole } from "../state/console";
import { useRoute } from "../state/resource";
import { asRecord } from "../text/json";
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
  const settings = useRoute("GET /api/settings", { query: { workspace } });
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
          Colours <Choice label="Theme" value={theme} options={THEMES} onChange={chooseTheme} />
        </p>
        <p className="muted">
          handrail {info.version}. Models: {info.models.join(", ") || "none"}. Workspaces: <Visible text={info.workspaces.join(", ")} />. Calls without a model:{" "}
          {info.directCalls ? "allowed" : "not allowed"}.
        </p>
      </section>
      <Loaded from={settings}>{(data) => <SettingsTable data={data as unknown as Settings} chooser={<WorkspaceSelect value={workspace} onChange={setWorkspace} />} />}</Loaded>
    </div>
  );
}

const COLUMNS: readonly Column<Setting>[] = [
  ["Setting", "subject setting-name", (one) => <Name setting={one} />],
  ["Value", "mono subject setting-value", ({ value }) => <Visible text={value === null ? "–" : writeValue(value)} />],
  ["From", "subject setting-from", ({ source }) => (source === "default" ? <span className="muted">default</span> : <Visible text={source} />)],
];

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
      <Warnings texts={data.notes} />
      <div className="filters">
        {chooser}
        <SearchField label="Filter settings" value={text} onChange={setText} />
        <CheckBox label="only those that were set" checked={changed} onChange={setChanged} />
      </div>
      {listed.length === 0 ? <Empty>No setting fits the filter.</Empty> : <Table columns={COLUMNS} rows={listed} id={(one) => one.key} />}
      <h2>Rules {data.rules.length}</h2>
      {data.rules.length === 0 ? <p className="muted">No rules besides the built-in ones.</p> : (
        <ul className="plain-list">
          {data.rules.map((rule, place) => <li key={place} className="mono subject"><Visible text={describeRule(rule)} /></li>)}
        </ul>
      )}
    </section>
  );
}

function Name({ setting: { key, help, allowed } }: { setting: Setting }) {
  return (
    <>
      <code>{key}</code>
      <br />
      <span className="note" title={`Allowed: ${allowed}`}>{help}</span>
    </>
  );
}

function writeValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What a rule has besides its empty fields. */
function describeRule(rule: unknown): string {
  const parts = Object.entries(asRecord(rule)).filter(([, value]) => value !== "" && value !== false && !(Array.isArray(value) && value.length === 0));
  return parts.map(([key, value]) => `${key} ${writeValue(value)}`).join(" · ");
}
