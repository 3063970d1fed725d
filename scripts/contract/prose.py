"""The words of docs/reference/protocol.md that no type says."""

START = """\
What crosses the border between an agent and the runtime: calls and results, questions and answers, events.
`handrail schema --out DIR` writes the JSON Schema of every type with the samples that are shown here.

Today it is spoken in Python (`Handrail.call`, `batch`, `answer`, `events`) and, one call at a time, by `handrail call
NAME JSON --json`; other transports carry the same messages.
"""

CALLS = """\
An agent sends a [tool_call](#tool_call) and gets exactly one [tool_result](#tool_result). Whatever happens on
the way — a wrong argument, a refusal, a crash — is a result too: `ok` is false and [`error`](#error) says
why. A command that ran and exited non-zero is `ok: true` with its exit code: the tool did what it was asked.

The calls of one assistant message are a batch. Every call of it is decided before the first one runs. What
comes back is [done](#done), with the results in the order of the calls, or [parked](#parked): nothing ran,
and a person has to answer.

The runtime makes the `tool_call_id` of a call that comes without one; a caller may give its own. An id is used
once: the same id again returns the first result and runs nothing, so a caller that lost an answer may simply
ask again.
"""

NAMES = """\
| where | spelling | when a value is not given |
|---|---|---|
| calls, results, `error`, `artifacts`, `attachments` | snake_case | present, as `null`, empty or its default |
| arguments, `data`, `meta`, `permission_request` and other messages | camelCase | absent, if it has a default |
| events | snake_case, but `eventId`, `sessionId`, `messageId` | present |

A field that is not in the schema is refused, at every level (`additionalProperties: false`). A time is RFC
3339 in UTC, a hash is SHA-256 in hexadecimal. A path is relative to the workspace, with `/`; in an extra root
it is absolute.
"""

EVENTS = """\
Everything that happens in a session is one stream of events in the order of `seq`, stored before it is told.
A reader that was cut off goes on with the events after the last `seq` it has; the same event has the same
`eventId` for ever. The kind of an event is in `kind`, and its channel follows from it: it is not written down
in the event.

A call has one `tool_call.start` and one `tool_call.end` or `tool_call.error`. A call of a tool with side effects
also has `tool_call.running`, stored before the first effect; one without effects is stored when it is over.
"""

PERMISSION = """\
The mode says what is asked: `plan` changes nothing; `ask` asks before a write; `auto` writes in the workspace
unasked and asks about what steers tools, hooks or builds; `full` asks nothing. No mode opens a path outside the
roots (rule `fs.outside`) or a credential (`fs.secret`).

1. Policy decides every call of the batch from [facts](#facts) that are recorded with the
   [decision](#decision). `allow`: it runs. `deny`: its result says which rule forbids it. `confirm`: a person
   is asked.
2. Where one call of a batch has to be confirmed, the whole batch is parked. Each question is a
   `tool_call.permission-required` event with a [permission_request](#permission_request) that holds all that
   is needed to answer and to go on, with a preview of what would change. Nothing is held in memory: the
   answer may come days later, to another process.
3. Who called is told at once: [parked](#parked) to a batch; to a single call a result with the code
   `PERMISSION_REQUIRED` and the request in `details`. That one is an answer for the meantime, never the
   call's result.
4. The [answer](#answer), one of those the request lists, becomes `tool_call.permission-granted` or
   `tool_call.permission-denied`. A request is answered once. `session` and `workspace` also grant the classes
   of commands that the request names in `grants`: commands of these classes are not asked about any more
   until somebody revokes it.
5. With the last answer of the batch, the batch runs. A refused call has the result `PERMISSION_DENIED` with
   the person's reason. An approval counts for what was shown: if a file of `basedOn` changed meanwhile, the result
   is `CONFLICT` and nothing is written; to a command so with another folder, other variables (`environment`),
   other `hosts` or a weaker sandbox.
6. Where the process that runs it is killed, calls that had begun are `INTERRUPTED`. Those that had not are
   ready: whoever sends the same batch or call again, gives the same answer again, or resumes the session runs
   them, once, and nobody is asked again.
"""

VERSIONS = """\
The contract is version {protocol}. Each tool has a version of its own.

| part | changes when |
|---|---|
| major | a schema or a meaning changes so that a caller has to change too |
| minor | an optional field is added |
| patch | something is fixed |

A call may name the version it was written for. Another major version is refused with `UNSUPPORTED_VERSION`,
naming the current one; any minor and patch of the same major will do. Recorded events of every version always
load.
"""

CODES = """\
The list of [error codes](codes.md#error-codes) is closed. The page marks the codes of calls that may succeed later.
"""

STORY = """\
The samples are taken from this session and from the conversation below; ids, times and durations are placeholders. A
file is read and a folder listed; a write is asked about and granted, another one refused; a tool is called that
does not exist; a custom tool reports while it works; another is cut off by `kill -9` and, when the session is
opened again, sealed as interrupted.
"""

TALK = """\
The same with an agent: a scripted model is at work in the workspace of the session above. It thinks, speaks, looks,
shows something, asks the person, and goes on with the reply; a command tries to reach a host that nobody opened. Then
the provider fails. The transcript is in the journal, as [messages](#messages): the model is sent those, and they
stand or fall with the events that were written with them.
"""
