/** The language of a file, by its name. */

const ENDINGS = {
  bash: "bash sh",
  c: "c h",
  cpp: "cc cpp hpp",
  csharp: "cs",
  css: "css",
  diff: "diff patch",
  dockerfile: "dockerfile",
  go: "go",
  ini: "cfg ini toml",
  java: "java",
  javascript: "js jsx mjs",
  json: "json",
  kotlin: "kt",
  makefile: "makefile",
  markdown: "md",
  php: "php",
  python: "py pyi",
  ruby: "rb",
  rust: "rs",
  sql: "sql",
  swift: "swift",
  typescript: "ts tsx",
  xml: "html svg xml",
  yaml: "yaml yml",
};
const BY_ENDING = new Map(Object.entries(ENDINGS).flatMap(([language, endings]) => endings.split(" ").map((one) => [one, language])));

export function findLanguage(path: string): string | null {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  return BY_ENDING.get(name.slice(name.lastIndexOf(".") + 1)) ?? null;
}
