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

const PLAIN: Style = { colour: null, background: null, bold: false, dim: false, italic: false, underline: false };

// CSI, OSC and other strings up to their end, two-character escapes, and control characters except tab and newline.
const ESCAPE =
  // eslint-disable-next-line no-control-regex
  /\u001b\[([0-9;:]*)m|(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?|\u001b[\]PX^_](?:[^\u0007\u001b\u009c]|\u001b(?!\\))*(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** The lines of an output. A carriage return begins its line anew, as a progress bar does. */
export function parseAnsi(text: string): { lines: readonly (readonly Span[])[] } {
  let style = PLAIN;
  const lines = text.replaceAll("\r\n", "\n").split("\n").map((line) => {
    const shown = line.slice(line.replace(/\r+$/, "").lastIndexOf("\r") + 1);
    const spans: Span[] = [];
    let end = 0;
    for (const match of shown.matchAll(ESCAPE)) {
      if (match.index > end) spans.push({ ...style, text: shown.slice(end, match.index) });
      end = match.index + match[0].length;
      if (match[1] !== undefined) style = applyCodes(style, match[1]);
    }
    if (end < shown.length) spans.push({ ...style, text: shown.slice(end) });
    return spans;
  });
  return { lines };
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

const CODES: Readonly<Record<number, Partial<Style>>> = {
  0: PLAIN,
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  39: { colour: null },
  49: { background: null },
};

function applyCode(style: Style, code: number): Style {
  const [ten, colour] = [Math.floor(code / 10), code % 10];
  if (colour < 8 && (ten === 3 || ten === 9)) return { ...style, colour: ten === 9 ? colour + 8 : colour };
  if (colour < 8 && (ten === 4 || ten === 10)) return { ...style, background: ten === 10 ? colour + 8 : colour };
  return { ...style, ...CODES[code] };
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
