/** Terminal output as pieces with colours. Every other escape sequence is removed. */

export interface Style {
  /** 0–15, or `#rrggbb`. */
  colour: number | string | null;
  background: number | string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

export interface Span extends Style {
  text: string;
}

export const PLAIN: Style = {
  colour: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
};

// CSI, OSC and other strings up to their end, two-character escapes, and control characters except tab and newline.
const ESCAPE =
  // eslint-disable-next-line no-control-regex
  /\u001b\[([0-9;:]*)m|(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|\u001b[\]PX^_](?:[^\u0007\u001b\u009c]|\u001b(?!\\))*(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export interface Parsed {
  lines: readonly (readonly Span[])[];
  style: Style;
}

/** The lines of an output. A carriage return begins its line anew, as a progress bar does. */
export function parseAnsi(text: string, start: Style = PLAIN): Parsed {
  let style = start;
  const lines: Span[][] = [];
  for (const line of text.replaceAll("\r\n", "\n").split("\n")) {
    const shown = line.slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1);
    const spans: Span[] = [];
    let end = 0;
    for (const match of shown.matchAll(ESCAPE)) {
      if (match.index > end) spans.push({ ...style, text: shown.slice(end, match.index) });
      end = match.index + match[0].length;
      if (match[1] !== undefined) style = applyCodes(style, match[1]);
    }
    if (end < shown.length) spans.push({ ...style, text: shown.slice(end) });
    lines.push(spans);
  }
  return { lines, style };
}

/** The text without any escape. */
export function stripAnsi(text: string): string {
  return text.replace(ESCAPE, "");
}

function applyCodes(before: Style, codes: string): Style {
  const numbers = codes.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  let style = before;
  for (let i = 0; i < numbers.length; i += 1) {
    const code = numbers[i] ?? 0;
    if (code === 38 || code === 48) {
      const [colour, used] = readColour(numbers.slice(i + 1));
      if (colour !== null) style = code === 38 ? { ...style, colour } : { ...style, background: colour };
      i += used;
    } else {
      style = applyCode(style, code);
    }
  }
  return style;
}

function applyCode(style: Style, code: number): Style {
  if (code >= 30 && code <= 37) return { ...style, colour: code - 30 };
  if (code >= 40 && code <= 47) return { ...style, background: code - 40 };
  if (code >= 90 && code <= 97) return { ...style, colour: code - 82 };
  if (code >= 100 && code <= 107) return { ...style, background: code - 92 };
  switch (code) {
    case 0:
      return PLAIN;
    case 1:
      return { ...style, bold: true };
    case 2:
      return { ...style, dim: true };
    case 3:
      return { ...style, italic: true };
    case 4:
      return { ...style, underline: true };
    case 22:
      return { ...style, bold: false, dim: false };
    case 23:
      return { ...style, italic: false };
    case 24:
      return { ...style, underline: false };
    case 39:
      return { ...style, colour: null };
    case 49:
      return { ...style, background: null };
    default:
      return style;
  }
}

/** A colour after 38 or 48, and how many numbers it took. */
function readColour(numbers: readonly number[]): [number | string | null, number] {
  if (numbers[0] === 5) return [fromPalette(numbers[1] ?? 0), 2];
  if (numbers[0] === 2) return [toHex(numbers[1] ?? 0, numbers[2] ?? 0, numbers[3] ?? 0), 4];
  return [null, 0];
}

function fromPalette(index: number): number | string {
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return toHex(grey, grey, grey);
  }
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return toHex(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function toHex(red: number, green: number, blue: number): string {
  return `#${[red, green, blue].map((one) => Math.min(255, Math.max(0, one)).toString(16).padStart(2, "0")).join("")}`;
}
