/** A task as a scrubber over its change sets: one after the other, with the files changed so far. */

import { useState } from "react";
import { request } from "../../api/client";
import type { Change, ChangeRecord } from "../../api/types";
import { DiffView } from "../../parts/diff";
import { ChangeTable } from "../../parts/change_table";
import { SearchField } from "../../parts/fields";
import { Empty, Loaded, useNow } from "../../parts/states";
import { Visible } from "../../parts/text";
import { Link, pathTo, setQuery, useAddress } from "../../router";
import { useConsole } from "../../state/console";
import { useKeys } from "../../state/keys";
import { useResource, useRoute } from "../../state/resource";
import { formatClock, formatPlural } from "../../text/format";
import "./replay.css";

const MOST = 1000;

export default function TaskReplay({ task }: { task: string }) {
  const history = useResource(`replay ${task}`, async (signal) => {
    const { workspace, title } = await request("GET /api/tasks/{task}", { params: { task }, signal });
    const { changes } = await request("GET /api/changes", { query: { workspace, task, limit: MOST }, signal });
    return { workspace, title, records: changes.toReversed() };
  });
  return (
    <div className="page">
      <p><Link to={pathTo("tasks", task)}>‹ Conversation</Link></p>
      <Loaded from={history}>
        {({ workspace, title, records }) => (
          <>
            <h1>Replay: {title === "" ? "Untitled" : title}</h1>
            {records.length === 0 ? <Empty>Nothing changed yet.</Empty> : <Scrubber task={task} workspace={workspace} records={records} />}
          </>
        )}
      </Loaded>
    </div>
  );
}

interface Props {
  task: string;
  workspace: string;
  records: readonly ChangeRecord[];
}

function Scrubber({ task, workspace, records }: Props) {
  const { query } = useAddress();
  const { announce } = useConsole();
  const now = useNow();
  const wanted = Number(query.get("at") ?? 1);
  const place = Math.min(records.length, Math.max(1, Number.isInteger(wanted) ? wanted : 1)) - 1;
  const describe = (at: number) => `${at + 1} of ${records.length}: ${records[at]?.summary ?? ""}`;
  const go = (to: number) => {
    const at = Math.min(records.length - 1, Math.max(0, to));
    setQuery({ at: String(at + 1) });
    announce(describe(at));
  };
  useKeys({ ArrowRight: () => go(place + 1), ArrowLeft: () => go(place - 1), j: () => go(place + 1), k: () => go(place - 1), Home: () => go(0), End: () => go(records.length - 1) });
  const record = records[place];
  if (record === undefined) return null;
  return (
    <>
      <div className="scrubber">
        <button type="button" disabled={place === 0} onClick={() => go(place - 1)} aria-label="Previous change">‹</button>
        <input
          type="range"
          min={1}
          max={records.length}
          value={place + 1}
          aria-label="Change"
          aria-valuetext={describe(place)}
          onChange={(event) => go(Number(event.target.value) - 1)}
        />
        <button type="button" disabled={place === records.length - 1} onClick={() => go(place + 1)} aria-label="Next change">
          ›
        </button>
        <span className="nowrap">{place + 1} of {records.length}</span>
      </div>
      <div className="replay">
        <section className="stack replay-change" aria-label="Change">
          <h2 className="subject">{record.number} <Visible text={record.summary} /></h2>
          <p className="row">
            <span className="muted">{record.tool}, {formatClock(record.time, now)}</span>
            {!record.inEffect && <span className="tag">undone since</span>}
            <Link to={pathTo("tasks", task, "calls", record.toolCallId)}>Show the call</Link>
            <Link to={`${pathTo("changes", record.number)}?task=${encodeURIComponent(task)}`}>Show the change</Link>
          </p>
          <ChangeDiff key={record.number} record={record} workspace={workspace} />
        </section>
        <FilesSoFar records={records.slice(0, place + 1)} onChoose={go} />
      </div>
    </>
  );
}

function ChangeDiff({ record, workspace }: { record: ChangeRecord; workspace: string }) {
  const { number } = record;
  const detail = useRoute("GET /api/changes/{number}", { params: { number }, query: { workspace } });
  return <Loaded from={detail}>{({ diff }) => (diff === "" ? <ChangeTable changes={record.changes} /> : <DiffView text={diff} />)}</Loaded>;
}

/** The files up to here. A file leads to its last change. */
function FilesSoFar({ records, onChoose }: { records: readonly ChangeRecord[]; onChoose: (place: number) => void }) {
  const [files, last] = [new Map<string, { change: Change; place: number; times: number }>(), records.length - 1];
  records.forEach((record, place) => {
    for (const change of record.changes) {
      if (change.kind !== "folder") files.set(change.path, { change, place, times: (files.get(change.path)?.times ?? 0) + 1 });
    }
  });
  const [filter, setFilter] = useState("");
  const listed = Array.from(files).filter(([path]) => path.includes(filter));
  return (
    <section className="stack" aria-label="Files so far">
      <h2>{formatPlural(files.size, "file")} so far</h2>
      {files.size > 20 && <SearchField label="Filter files" value={filter} onChange={setFilter} />}
      <ul className="replay-files">
        {listed.map(([path, { change, place, times }]) => (
          <li key={path}>
            <button type="button" className={place === last ? "quiet mono now" : "quiet mono"} onClick={() => onChoose(place)}>
              <Visible text={path} />
            </button>
            <span className="muted">
              {change.action}
              {times > 1 && ` ×${times}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
