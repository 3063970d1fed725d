/** Makes characters visible that could deceive: control, bidirectional and zero-width characters, blanks at the end. */

export interface Piece {
  text: string;
  /** Whether `text` stands for a character that cannot be seen. */
  hidden: boolean;
}

const HIDDEN =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]|[ \t]+(?=\n|$)/gu;

/** The pieces of a text: as it is, or `\u202e` for what cannot be seen. `ends`: blanks at the end of a line too. */
export function splitVisible(text: string, ends = true): readonly Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (!ends && /^[ \t]/.test(match[0])) continue;
    if (match.index > end) pieces.push({ text: text.slice(end, match.index), hidden: false });
    pieces.push({ text: escapeAll(match[0]), hidden: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), hidden: false });
  return pieces;
}

/** The text with such characters written out. */
export function makeVisible(text: string): string {
  return splitVisible(text)
    .map((piece) => piece.text)
    .join("");
}

function escapeAll(text: string): string {
  return Array.from(text, (character) => {
    if (character === " ") return "␣";
    if (character === "\t") return "\\t";
    if (character === "\r") return "\\r";
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
  }).join("");
}

const SCRIPTS = [/\p{Script=Latin}/u, /\p{Script=Cyrillic}/u, /\p{Script=Greek}/u, /\p{Script=Han}/u, /\p{Script=Arabic}/u];

/** Whether the letters of a host come from several scripts, as in a look-alike of another host. */
export function hasMixedScripts(host: string): boolean {
  return SCRIPTS.filter((script) => script.test(host)).length > 1;
}
