/** Numbers and times for people. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `8 s`, `2 m`, `3 h`, `1 d`. */
export function formatAge(time: string | null | undefined, now: number): string {
  if (time === null || time === undefined) return "–";
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (seconds < MINUTE) return `${seconds} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} m`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
}

/** `0.04 s`, `1.8 s`, `12 s`, `2 m 5 s`. */
export function formatDuration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 1) return `${seconds.toFixed(2)} s`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / MINUTE)} m ${Math.round(seconds % MINUTE)} s`;
}

/** `4.7 ms`, `126 ms`, `1.8 s`. */
export function formatSpan(milliseconds: number): string {
  if (milliseconds >= 1000) return formatDuration(milliseconds);
  return `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
}

/** `512 B`, `1.2 MB`. */
export function formatSize(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ""}`;
}

/** `12.4k`. */
export function formatCount(count: number): string {
  return count < 1000 ? String(count) : `${(count / 1000).toFixed(1)}k`;
}

/** A text of several lines in one. */
export function joinLines(text: string): string {
  return text.replaceAll("\n", " ⏎ ");
}

export function shorten(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** `1 file`, `3 files`. */
export function formatPlural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** `10:42`, or the date if it was another day. */
export function formatClock(time: string, now: number): string {
  const date = new Date(time);
  const clock = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return new Date(now).toDateString() === date.toDateString()
    ? clock
    : `${date.toLocaleDateString("en-CA")} ${clock}`;
}
