"""The words of docs/reference/protocol.md that no type says."""

START = """\
An agent and the runtime exchange calls and results, requests and answers, and events.
`handrail schema --out DIR` writes the JSON Schema of every type with the samples of this page.

The Python API has these messages (`Handrail.call`, `batch`, `answer`, `events`). `handrail call NAME JSON --json`
makes one call at a time. Other transports carry the same messages.
"""

CALLS = """\
An agent sends a [tool_call](#tool_call) and gets exactly one [tool_result](#tool_result). A wrong argument, a
refusal and a crash are results too: `ok` is false and [`error`](#error) has the reason. If a command exits with
another code than 0, `ok` is true and the result has the exit code, because the tool did its work.

The calls of one assistant message are a batch. The runtime decides every call of a batch before the first one runs.
The answer is [done](#done), with the results in the order of the calls, or [parked](#parked): nothing ran, and a
person has to answer.

A caller may give the `tool_call_id` of a call. Otherwise the runtime makes one. An id counts once: the same id again
returns the first result and runs nothing. So a caller that lost an answer may simply ask again.
"""

NAMES = """\
| where | spelling | when a value is not given |
|---|---|---|
| calls, results, `error`, `artifacts`, `attachments` | snake_case | present, as `null`, empty or its default |
| arguments, `data`, `meta`, `permission_request` and other messages | camelCase | absent, if it has a default |
| events | snake_case, but `eventId`, `sessionId`, `messageId` | present |

An unknown field is an error, at every level (`additionalProperties: false`). A time is RFC
3339 in UTC, a hash is SHA-256 in hexadecimal. A path is relative to the workspace, with `/`; in an extra root
it is absolute.
"""

EVENTS = """\
Everything that happens in a session is one stream of events in the order of `seq`. The runtime stores each event
before it delivers it. A reader that was cut off continues after the last `seq` that it has. The `eventId` of an event
never changes. The kind of an event is in `kind`. The channel follows from the kind and is not in the event.

A call has one `tool_call.start` and one `tool_call.end` or `tool_call.error`. A call of a tool with side effects
also has `tool_call.running`, stored before the first effect. The runtime stores a call without effects at its end.
"""

PERMISSION = """\
The mode decides which calls need approval. `plan` changes nothing. `ask` asks before a write. `auto` writes in the
workspace unasked, and asks before changes to tools, hooks or builds. `full` asks nothing. No mode opens a path outside
the roots (rule `fs.outside`) or a credential (`fs.secret`).

1. Policy decides every call of the batch from [facts](#facts), which the runtime records with the
   [decision](#decision). `allow`: the call runs. `deny`: its result names the rule. `confirm`: the call needs the
   approval of a person.
2. If one call of a batch needs approval, the runtime parks the whole batch. Each request is a
   `tool_call.permission-required` event with a [permission_request](#permission_request). The request holds everything
   that an answer needs, with a preview of the changes. Nothing stays in memory: the answer may come days later, to
   another process.
3. The caller gets [parked](#parked) for a batch. For a single call, it gets a result with the code
   `PERMISSION_REQUIRED` and the request in `details`. That result is not the final one.
4. The [answer](#answer), one of those the request lists, becomes `tool_call.permission-granted` or
   `tool_call.permission-denied`. A request has one answer. `session` and `workspace` also grant the classes
   of commands that the request names in `grants`. Commands of these classes need no approval until a person revokes
   the grant.
5. With the last answer of the batch, the batch runs. A refused call has the result `PERMISSION_DENIED` with
   the person's reason. An approval counts for the preview that the person saw. If a file of `basedOn` changed since,
   the result is `CONFLICT` and nothing is written. The same holds for a command with another folder, other variables
   (`environment`), other `hosts` or a weaker sandbox.
6. If the process is killed, calls that had begun are `INTERRUPTED`. The other calls are ready. The next process that
   sends the same call, gives the same answer or resumes the session runs these calls once, without another request.
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
The samples come from this session and from the conversation below. Ids, times and durations are placeholders. The
agent reads a file and lists a folder. A person approves one write and denies another one. The agent calls a tool that
does not exist. A custom tool reports while it works. `kill -9` cuts off another tool. The next process that opens the
session seals that call as interrupted.
"""

TALK = """\
A scripted model works in the workspace of the session above. The model thinks, speaks, reads, shows something and asks
the person. After the reply, a command tries to reach a blocked host. Then the provider fails. The transcript is in the
journal, as [messages](#messages). The runtime sends these to the model, and stores them together with their events.
"""
