// Prints the gzipped size of the built console, and fails above the limit.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT = 400_000;
const folder = new URL("../../src/handrail/server/console", import.meta.url).pathname;
const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile() && !entry.name.endsWith(".md"));
const sizes = files.map((entry) => [entry.name, gzipSync(readFileSync(join(entry.parentPath, entry.name))).length]);
for (const [name, size] of sizes.sort((a, b) => b[1] - a[1])) console.log(String(size).padStart(8), name);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(String(total).padStart(8), `in all, of at most ${LIMIT}`);
process.exit(total > LIMIT ? 1 : 0);
