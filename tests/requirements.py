"""What handrail must do, by id: each requirement split into clauses, each clause with the tests that prove it.

A clause without tests is `planned`. tests/test_requirements.py fails when a named test does not exist.
"""

from typing import NamedTuple


class Clause(NamedTuple):
    """One sentence of a requirement, shortened, and the tests (file::function, below tests/) that prove it."""

    text: str
    tests: tuple[str, ...]


planned: tuple[str, ...] = ()


def clause(text: str, *tests: str) -> Clause:
    return Clause(text, tests)


REQUIREMENTS: dict[str, tuple[Clause, ...]] = {
    # Tools: the base layer
    "T-1": (
        clause("exactly eight base tools", *planned),
        clause("read, write and ls have exactly the parameters of the table"),
        clause("edit, find and grep have exactly the parameters of the table", *planned),
        clause("exec and process have exactly the parameters of the table", *planned),
    ),
    "T-2": (
        clause("an unknown name runs nothing and gives UNKNOWN_TOOL with the active names and a warning event"),
        clause("no aliasing and no case repair in strict mode"),
        clause('repair="case" matches names that differ only in case, and says so'),
        clause("custom tools keep their own names"),
        clause("companions, gain-layer and MCP tools keep their own names", *planned),
    ),
    "T-3": (
        clause("no retired name in any definition or schema"),
        clause("no retired name in any prompt", *planned),
    ),
    "T-4": (
        clause("arguments are checked before policy and before any effect"),
        clause("every problem is listed with field, value and what to pass instead"),
        clause("an alias is refused with the canonical name"),
    ),
    "T-5": (
        clause("offset is a 1-based line, negative counts from the end; limit defaults to 2000, at most 10,000"),
        clause("a page at either end of a large file costs a page"),
        clause("lines over 2,000 characters are cut and marked"),
        clause("meta has returned, total, nextOffset; data has size, mtime, encoding, line ending, hash"),
        clause("over 8 MiB total may be null, and a deep offset uses a cached sparse line index"),
        clause("a missing file names up to three near ones"),
        clause("directory, device, FIFO, socket: a clear error, never a hang"),
        clause("binary is refused"),
        clause("images come back as attachments; read.images=false restores the refusal"),
        clause("PDF pages as text with the pdf extra"),
    ),
    "T-6": (
        clause("creates parents, overwrites"),
        clause("atomic: unique temporary file in the same folder, fsync, rename"),
        clause("keeps the mode"),
        clause("JSON, YAML, TOML, front matter that no longer parses: written, with a warning"),
        clause("the result carries a unified diff"),
    ),
    "T-7": (clause("edit: exact match first, then the ladder, only the matched span changes", *planned),),
    "T-8": (clause("edit refusals teach", *planned),),
    "T-9": (
        clause("write over a file that changed since read: STALE_FILE only if the bytes differ"),
        clause("the check is repeated at the moment of commit"),
        clause("edit over a file that changed since read", *planned),
    ),
    "T-10": (clause("find and grep on ripgrep, stable order, honest totals", *planned),),
    "T-11": (clause("without ripgrep the same results by Python", *planned),),
    "T-12": (
        clause("default depth 1, bounded, truncation reported"),
        clause("directories first, sizes"),
    ),
    "T-13": (clause("exec: one command, bounded output, whole tree gone at the end", *planned),),
    "T-14": (clause("process: list poll log write kill clear remove; sessions survive a restart", *planned),),
    "T-15": (
        clause("mutating calls of one session run one at a time, in order"),
        clause("between sessions and processes a lock per file; waiting is bounded and ends in CONFLICT"),
        clause("reads never wait"),
    ),
    # Companions and the gain layer
    "X-1": (clause("companions are off or on by configuration", *planned),),
    "X-2": (clause("display", *planned),),
    "X-3": (clause("question", *planned),),
    "X-4": (clause("apply_patch, multi_edit, delete", *planned),),
    "X-5": (clause("code tools", *planned),),
    "X-6": (clause("LSP tools", *planned),),
    "X-7": (clause("new diagnostics after a change", *planned),),
    "X-8": (clause("codebase_search", *planned),),
    "X-9": (clause("layer rule and selection guide", *planned),),
    "X-10": (clause("memory, todo, skill_list, skill_control", *planned),),
    # Definition, registry, dialects
    "D-1": (
        clause("one spec drives schema, validation, policy and docs"),
        clause("additionalProperties is false everywhere"),
        clause("one spec drives the prompt", *planned),
    ),
    "D-2": (clause("the context holds ids, workspace, cancellation, limits, metadata and nothing else"),),
    "D-3": (
        clause("tools by decorator, entry point or file in a tool folder"),
        clause("a custom tool never shadows a base tool"),
        clause("a plain definition with a handler registers too"),
        clause("the project's own tool folder, once the project is trusted", *planned),
    ),
    "D-4": (clause("a request for another major version is answered with a clear error"),),
    "D-5": (clause("dialects", *planned),),
    "D-6": (
        clause("OpenAI and Anthropic tool lists"),
        clause("JSON Schema files"),
        clause("MCP tools, pydantic-ai toolset, LangChain tools", *planned),
    ),
    "D-7": (
        clause("offered = registered ∩ configuration ∩ agent permissions"),
        clause("a tool not offered is in no list or schema; calling it is UNKNOWN_TOOL"),
        clause("∩ active skills' allowed-tools", *planned),
    ),
    "D-8": (clause("faces open no workspace file and start no process themselves"),),
    # Results, errors, limits
    "R-1": (
        clause("every call has exactly one result of one shape"),
        clause("envelope snake_case, inside data and meta camelCase"),
    ),
    "R-2": (
        clause("error codes are one closed, documented list"),
        clause("a failure of the infrastructure is a result; only a store that cannot be written raises"),
        clause("a command that exits non-zero is ok", *planned),
    ),
    "R-3": (
        clause("content over the budget becomes a preview plus a reference that read can page, complete"),
        clause("pages of @output joined give the text back; this session only"),
        clause("read never offloads: whole lines up to the budget and nextOffset"),
        clause("nothing is offloaded in a session that cannot read it back"),
        clause("a batch has a budget of its own"),
        clause("grep accepts the reference", *planned),
    ),
    "R-4": (
        clause("one call shape; requested_permissions may only narrow"),
        clause("the same tool_call_id again returns the first result and runs nothing"),
    ),
    "R-5": (clause("the result in each source's shape", *planned),),
    # Policy, permissions
    "P-1": (
        clause("policy is a pure function that names the deciding rule"),
        clause("replayed from the journal", *planned),
    ),
    "P-2": (
        clause("permissions and the coarse permissionType"),
        clause("external_directory, bash, edit for S4", *planned),
    ),
    "P-3": (clause("order of layers, rules, grants, defaults", *planned),),
    "P-4": (clause("shell commands are parsed", *planned),),
    "P-5": (
        clause("containment is race-free: links, .., hard links, /proc, prefix siblings do not escape"),
        clause("several roots, read-only or writable, and the session's own folder; another session's is outside"),
        clause("credentials are denied for reading and writing"),
        clause(".git/hooks, .git/config, tool and CI configuration are confirmed"),
        clause("one boundary for file tools and shell", *planned),
    ),
    "P-6": (
        clause("once and deny with a reason; a once-approval is bound to arguments and files"),
        clause("session, workspace, output only; revocable grants", *planned),
    ),
    "P-7": (
        clause("if any call of a batch needs permission none runs; all requests are emitted"),
        clause("resumes exactly once, survives a restart; denied calls get a uniform result"),
        clause("kill -9 in between, every mix and order", *planned),
    ),
    "P-8": (
        clause("plan, ask, auto, full for file tools"),
        clause("unattended denies instead of waiting; call parks without a terminal"),
        clause("modes for commands, network, deletions", *planned),
    ),
    "P-9": (clause("policy explain and test", *planned),),
    "P-10": (clause("built-in command denies", *planned),),
    "P-11": (clause("deletions and bulk changes", *planned),),
    "P-12": (
        clause("a path outside the roots: OUTSIDE_WORKSPACE"),
        clause('paths.outside="ask"', *planned),
    ),
    # Sandbox
    "B-1": (clause("commands run in an OS sandbox", *planned),),
    "B-2": (clause("network by allow-list through a proxy", *planned),),
    "B-3": (clause("environment by allow-list", *planned),),
    "B-4": (clause("limits, reported when they fire", *planned),),
    "B-5": (clause("preview before permission", *planned),),
    "B-6": (clause("undo of every change", *planned),),
    "B-7": (clause("restricted profile", *planned),),
    # Events, audit, memory
    "E-1": (
        clause("one typed stream; every event has eventId, seq, session, time"),
        clause("tool events name their call; permission events carry the request"),
    ),
    "E-2": (
        clause("schema of every event and message, with a validated sample"),
        clause("samples of what is emitted come from a real run"),
        clause("docs/protocol.md is generated and checked"),
        clause("old recorded events load"),
    ),
    "E-3": (
        clause("append-only; every event readable again after a seq"),
        clause("log export and live JSONL"),
        clause("broken lines are reported, not fatal"),
    ),
    "E-4": (clause("adapters for the sources' streams", *planned),),
    "E-5": (
        clause("exactly one audit record per call, refusals included, with redacted arguments"),
        clause("started stands before the side effect; after a crash the call gets its record, INTERRUPTED"),
        clause("hash-chained: any change, cut or insertion is found, a cut tail too"),
    ),
    "E-6": (clause("replay of a session", *planned),),
    "E-7": (
        clause("logs, crash reports and the audit hold no contents, whole arguments or environment values"),
        clause("nothing shown to the model names paths outside the roots"),
    ),
    # Main loop
    "L-1": (clause("a loop on one screen", *planned),),
    "L-2": (clause("providers", *planned),),
    "L-3": (clause("guards", *planned),),
    "L-4": (clause("system prompt", *planned),),
    "L-5": (clause("kill -9 of the loop", *planned),),
    "L-6": (clause("skills", *planned),),
    # Faces
    "F-1": (clause("library: a few names at the root, async and sync, typed"),),
    "F-2": (
        clause("call tools schema log audit doctor config, with the settled exit codes"),
        clause("fast to start: nothing heavy is imported"),
        clause("the other commands", *planned),
    ),
    "F-3": (clause("MCP both ways", *planned),),
    "F-4": (clause("ACP", *planned),),
    "F-5": (clause("HTTP and WebSocket", *planned),),
    "F-6": (clause("web console", *planned),),
    "F-7": (clause("fleet", *planned),),
}
