"""What of the protocol's conformance suite a server of tools and a client of theirs have to pass, and why the rest does
not apply.

A test compares this with what the suite itself lists, so that no new scenario goes unnoticed; docs/mcp-conformance.md
shows the same tables.
"""

_NO_PROMPTS = "There are no prompts: a server that serves tools only does not declare them, and -32601 is its answer."
_NO_RESOURCES = "There are no resources: files are read by tools, under the policy."
_NO_COMPLETION = "Completion is for the arguments of prompts and resource templates, which handrail does not have."
_NO_SAMPLING = "No tool asks the client's model anything; the protocol itself is giving sampling up."
_OWN_FORMS = (
    "It wants a form with given fields. The only forms are ours: a permission, or a question of the model. "
    "`tools-call-elicitation` shows that they are put."
)
_EXTENSION = "An extension of the protocol that is not offered."

APPLIES: frozenset[str] = frozenset(
    (
        "dns-rebinding-protection",
        "http-header-validation",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-multi-round",
        "input-required-result-request-state",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "logging-set-level",
        "ping",
        "server-initialize",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "server-stateless",
        "tools-call-audio",
        "tools-call-elicitation",
        "tools-call-embedded-resource",
        "tools-call-error",
        "tools-call-image",
        "tools-call-mixed-content",
        "tools-call-simple-text",
        "tools-call-with-logging",
        "tools-call-with-progress",
        "tools-list",
    )
)
"""Scenarios in which every check has to succeed, but for those named below."""

NOT_OURS: dict[str, str] = {
    "caching": "It wants hints on lists of prompts and resources too. Those on tools/list are there.",
    "completion-complete": _NO_COMPLETION,
    "elicitation-sep1034-defaults": _OWN_FORMS,
    "elicitation-sep1330-enums": _OWN_FORMS,
    "http-custom-header-server-validation": "No tool of ours asks for an argument to be repeated in a header.",
    "input-required-result-basic-elicitation": _OWN_FORMS,
    "input-required-result-basic-list-roots": "Roots are asked for in versions with a handshake only.",
    "input-required-result-basic-sampling": _NO_SAMPLING,
    "input-required-result-capability-check": "It wants sampling where there are no forms. Ours waits for an answer "
    "from elsewhere then, as its own tests show.",
    "input-required-result-multiple-input-requests": "It wants a form, sampling and roots at once. We ask one thing.",
    "input-required-result-non-tool-request": _NO_PROMPTS,
    "json-schema-2020-12": "It wants a tool with a given schema by a given name. Schemas of our tools are made from "
    "their types; those of other servers' tools are handed on as they are.",
    "prompts-get-embedded-resource": _NO_PROMPTS,
    "prompts-get-simple": _NO_PROMPTS,
    "prompts-get-with-args": _NO_PROMPTS,
    "prompts-get-with-image": _NO_PROMPTS,
    "prompts-list": _NO_PROMPTS,
    "resources-list": _NO_RESOURCES,
    "resources-read-binary": _NO_RESOURCES,
    "resources-read-text": _NO_RESOURCES,
    "resources-subscribe": _NO_RESOURCES,
    "resources-templates-read": _NO_RESOURCES,
    "resources-unsubscribe": _NO_RESOURCES,
    "sep-2164-resource-not-found": _NO_RESOURCES,
    "sep-2640-skills-directory": _EXTENSION,
    "sep-2640-skills-enumeration": _EXTENSION,
    "sep-2640-skills-manifest": _EXTENSION,
    "server-sse-polling": "A stream that breaks is not taken up again: the server keeps nothing to repeat. What came "
    "of a call is in the journal, and a call that was left waiting is kept for the same call.",
    "tasks-capability-negotiation": _EXTENSION,
    "tasks-dispatch-and-envelope": _EXTENSION,
    "tasks-lifecycle": _EXTENSION,
    "tasks-mrtr-composition": _EXTENSION,
    "tasks-mrtr-input": _EXTENSION,
    "tasks-request-headers": _EXTENSION,
    "tasks-request-state-removal": _EXTENSION,
    "tasks-required-task-error": _EXTENSION,
    "tasks-status-notifications": _EXTENSION,
    "tasks-wire-fields": _EXTENSION,
    "tools-call-sampling": _NO_SAMPLING,
}

_STATE_NEEDED = (
    "An answer without the state that it belongs to is refused, not asked for again: it is an answer to a permission, "
    "and must not pass for one to another. The suite only warns."
)
BUT: dict[str, str] = {
    "sep-2322-ignore-unexpected-params": _STATE_NEEDED,
    "sep-2322-missing-response-rerequests": _STATE_NEEDED,
    "sep-2322-request-state-complete": 'It answers {"ok": true}, which is neither yes nor no to a permission: it is '
    "asked once more. `input-required-result-multi-round` goes on from there.",
    "sep-2575-missing-capability-http-400": _NO_SAMPLING,
    "sep-2575-server-rejects-undeclared-capability": _NO_SAMPLING,
    "sep-2575-server-sends-prompts-list-changed-on-subscription": _NO_PROMPTS,
}
"""Checks of those scenarios that do not apply."""

OVER_HTTP_ONLY: dict[str, str] = {
    "dns-rebinding-protection": "No Host or Origin.",
    "http-header-validation": "No headers.",
    "server-session-lifecycle": "No sessions: a process is one.",
    "server-sse-multiple-streams": "No streams.",
    "sep-2575-http-server-header-mismatch-400": "No headers.",
    "sep-2575-http-server-method-not-found-404-initialize": "On a pipe the first message decides how the rest is read; "
    "a later handshake gets the supported versions (-32022).",
}
"""Scenarios and checks that are about HTTP itself: they say nothing about the server over stdio."""

CLIENT_APPLIES: frozenset[str] = frozenset(
    (
        "http-custom-headers",
        "http-invalid-tool-headers",
        "http-standard-headers",
        "initialize",
        "json-schema-2020-12-preservation",
        "json-schema-ref-no-deref",
        "request-metadata",
        "sse-retry",
        "tools_call",
    )
)
"""Scenarios for clients that a session with the suite's server has to pass, in every version that has them."""

CLIENT_NOT_OURS: dict[str, str] = {
    "auth/*": "OAuth is not spoken: a server that wants it (401) is left off, and the person told to put a token into "
    "its `headers`.",
    "elicitation-sep1034-client-defaults": "Elicitation is not declared: no other server is let put forms to the "
    "person.",
    "sep-2322-client-request-state": "It asks by forms, as above. A server that asks for nothing and only wants to be "
    "called again is called again, with its state.",
    "sep-2640-*": "An extension: skills that servers bring are not read.",
}
"""Scenarios for clients that do not apply; a name may be a pattern for several."""
