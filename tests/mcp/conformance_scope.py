"""What of the protocol's conformance suite a server of tools and a client of theirs have to pass, and why the rest does
not apply.

A test compares this with what the suite itself lists, so that no new scenario goes unnoticed;
docs/reference/mcp-conformance.md shows the same tables.
"""

_NO_PROMPTS = (
    "handrail serves tools and no prompts: the server does not declare prompts, and answers requests for prompts "
    "with -32601."
)
_NO_RESOURCES = "handrail serves no resources: tools read files, under the policy."
_NO_COMPLETION = "Completion is for the arguments of prompts and resource templates, which handrail does not have."
_NO_SAMPLING = "No tool of handrail uses the client's model (sampling), and the protocol is removing sampling."
_OWN_FORMS = (
    "The scenario requires a form with given fields. handrail sends forms only for permission requests and "
    "questions of the model, and `tools-call-elicitation` tests them."
)
_EXTENSION = "handrail does not offer this extension of the protocol."

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
    "caching": "The scenario requires caching hints on lists of prompts and resources, which handrail does not "
    "have. handrail sends these hints for tools/list.",
    "completion-complete": _NO_COMPLETION,
    "elicitation-sep1034-defaults": _OWN_FORMS,
    "elicitation-sep1330-enums": _OWN_FORMS,
    "http-custom-header-server-validation": "No tool of handrail requires an argument in a header.",
    "input-required-result-basic-elicitation": _OWN_FORMS,
    "input-required-result-basic-list-roots": "handrail requests roots only in protocol versions with a handshake.",
    "input-required-result-basic-sampling": _NO_SAMPLING,
    "input-required-result-capability-check": "The scenario requires sampling from a client without forms. With "
    "such a client, handrail waits for an answer in `handrail approvals`, as its own tests show.",
    "input-required-result-multiple-input-requests": "The scenario requires a form, sampling and roots in one "
    "request. handrail requests one of them at a time.",
    "input-required-result-non-tool-request": _NO_PROMPTS,
    "json-schema-2020-12": "The scenario requires a tool with a given name and schema. handrail makes the schemas "
    "of its tools from their types, and does not change the schemas of other servers' tools.",
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
    "server-sse-polling": "A client cannot resume a broken stream, because the server keeps no messages to repeat. "
    "The journal has the result of each call, and a call that waits for approval waits for the same call again.",
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
    "If an answer to a permission request comes without the state of its request, handrail refuses it and does not "
    "ask again, because the answer could be for another request. The suite only warns about this."
)
BUT: dict[str, str] = {
    "sep-2322-ignore-unexpected-params": _STATE_NEEDED,
    "sep-2322-missing-response-rerequests": _STATE_NEEDED,
    "sep-2322-request-state-complete": 'The suite answers a permission request with {"ok": true}, which neither '
    "approves nor denies, so handrail asks again. `input-required-result-multi-round` tests the second answer.",
    "sep-2575-missing-capability-http-400": _NO_SAMPLING,
    "sep-2575-server-rejects-undeclared-capability": _NO_SAMPLING,
    "sep-2575-server-sends-prompts-list-changed-on-subscription": _NO_PROMPTS,
}
"""Checks of those scenarios that do not apply."""

OVER_HTTP_ONLY: dict[str, str] = {
    "dns-rebinding-protection": "Over stdio there is no Host and no Origin.",
    "http-header-validation": "Over stdio there are no headers.",
    "server-session-lifecycle": "Over stdio each process is one session.",
    "server-sse-multiple-streams": "Over stdio there are no streams.",
    "sep-2575-http-server-header-mismatch-400": "Over stdio there are no headers.",
    "sep-2575-http-server-method-not-found-404-initialize": "Over stdio the first message decides the protocol "
    "version of all later ones, and a later handshake gets the error -32022 with the supported versions.",
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
    "auth/*": "handrail does not support OAuth: it does not use a server that requires OAuth (401), and advises you "
    "to put a token into `headers` of the server.",
    "elicitation-sep1034-client-defaults": "handrail does not declare elicitation, so other servers cannot show you "
    "forms.",
    "sep-2322-client-request-state": "The scenario requires forms from the client, which handrail does not declare. "
    "If a server only requests another call, handrail calls it again with the state of the server.",
    "sep-2640-*": "handrail does not support this extension: it does not read skills of servers.",
}
"""Scenarios for clients that do not apply; a name may be a pattern for several."""
