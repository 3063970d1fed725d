"""Decides whether a call may run."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from handrail.policy.config import MCP_PREFIX, SKILL, PolicyConfig, find_grant
from handrail.policy.decide import decide, require_approval
from handrail.protocol.arguments import build_argument_error
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Access, Decision, Facts, MemoryFact, PathFact
from handrail.protocol.errors import REFUSAL_ADVICE, ErrorCode, Problem, ToolError
from handrail.protocol.permissions import StandingGrant
from handrail.protocol.text import find_similar
from handrail.protocol.tool_spec import ToolSpec, parse_major_version
from handrail.protocol.wire import escape_surrogates
from handrail.runtime.pending_call import PendingCall
from handrail.runtime.registry import parse_arguments
from handrail.runtime.session import Session
from handrail.tools.tool import CommandUse, ProcessUse, Tool, Touches
from handrail.workspace.facts import build_path_fact
from handrail.workspace.roots import clip_path
from handrail.workspace.workspace import Workspace

Step = Callable[[Session, PendingCall], None]
"""A step of a call. A ToolError ends the call."""


def _find_tool(session: Session, pending: PendingCall) -> None:
    """Finds the tool of exactly the called name."""
    name = pending.call.name
    if session.skills.any or not session.journal.skill_marker.is_missing():
        session.skills.refresh()
    if session.foreign is not None and name.startswith(MCP_PREFIX):
        session.refresh_servers()
    tool = session.skills.offer.get(name)
    if tool is None and session.repair == "case":
        tool = session.offer.differing_in_case(name)
        if tool is not None:
            pending.warn("UNKNOWN_TOOL", f"{escape_surrogates(name)[:80]} was taken for {tool.spec.name}.")
    if tool is None:
        raise _build_unknown_tool_error(session, pending)
    pending.tool = tool
    if tool.spec.foreign is not None:
        _check_description(pending)


def _check_version(_: Session, pending: PendingCall) -> None:
    """Refuses a call for another major version: its schema or meaning differs."""
    asked = pending.call.version
    if asked is None:
        return
    spec = pending.tool.spec
    if parse_major_version(asked) is None:
        raise ToolError(
            "INVALID_ARGUMENT",
            f"version {escape_surrogates(asked)[:40]!r} does not exist; the current one is {spec.version}.",
        )
    if parse_major_version(asked) != parse_major_version(spec.version):
        message = (
            f"{spec.name} is version {spec.version}; {asked[:40]} has another schema or meaning. Leave version out."
        )
        raise ToolError("UNSUPPORTED_VERSION", message, details={"current": spec.version, "asked": asked[:40]})


def check_arguments(_: Session, pending: PendingCall) -> None:
    """Parses the arguments. One error lists all problems."""
    spec = pending.tool.spec
    pending.arguments = parse_arguments(spec, pending.call.args)
    if not pending.args_are_json:
        problem = "the arguments hold text that is not valid Unicode, or a value that is not JSON"
        raise build_argument_error(spec, (Problem(field="", problem=problem),))


def _gather_facts(session: Session, pending: PendingCall) -> None:
    if session.rules.outside == "ask":
        session.opened_roots.refresh()
    touched = resolve_touches(pending.tool, pending.arguments, session.workspace)
    if touched.process is not None:
        pending.facts = _collect_process_facts(session, touched.process)
    elif touched.command is not None:
        pending.facts = _collect_command_facts(session, touched.command)
    else:
        pending.facts = collect_touched_facts(session.workspace, touched)
    if session.skills.any and (narrowed := session.skills.narrowing(pending.tool.spec.name)) is not None:
        pending.facts = replace(pending.facts, narrowed=narrowed)


def _decide_call(session: Session, pending: PendingCall) -> None:
    """Asks the policy. A denial ends the call. A call that needs approval goes on to its permission request."""
    rules = session.rules
    facts = pending.facts
    may_be_granted = facts.command is not None or facts.foreign is not None
    if pending.tool.spec.side_effects and rules.can_grant_edits:
        may_be_granted |= any(fact.access != "read" for fact in facts.paths)
    if may_be_granted and (grants := session.grants.current()):
        rules = replace(rules, grants=grants)
    if pending.answer is not None:
        # If a person answered, the run is attended. A path that is still outside leads elsewhere by now.
        rules = replace(rules, unattended=rules.unattended and pending.answer.by is not None, outside="deny")
    pending.rules = rules
    decision = decide(pending.tool.spec, pending.call.requested_permissions, pending.facts, rules)
    if confirm := pending.call.confirm:
        decide_by = partial(decide, pending.tool.spec, pending.call.requested_permissions, pending.facts)
        decision = require_approval(decision, confirm, decide_by, rules)
    pending.decision = decision
    if decision.decision == "deny":
        raise _refuse(pending, decision)
    if decision.decision == "confirm":
        _refuse_no_network(pending)


DECIDING: tuple[Step, ...] = (_find_tool, _check_version, check_arguments, _gather_facts, _decide_call)


def recheck_skills(session: Session, pending: PendingCall) -> None:
    """Decides again if an earlier call of the batch activated a skill."""
    if not session.skills.any:
        return
    spec, narrowed = pending.tool.spec, session.skills.narrowing(pending.tool.spec.name)
    if session.offer.get(spec.name) is None and session.offer.get_registered(spec.name) is not None:
        raise _build_unknown_tool_error(session, pending)
    if narrowed is None or narrowed == pending.facts.narrowed or pending.rules is None:
        return
    pending.facts = replace(pending.facts, narrowed=narrowed)
    decision = decide(spec, pending.call.requested_permissions, pending.facts, pending.rules)
    if decision.decision == "deny":
        pending.outcome_decision = decision
        raise _refuse(pending, decision)


def recheck_server(session: Session, pending: PendingCall) -> None:
    """Checks that a server still offers the tool that the call was decided for."""
    decided = pending.tool
    if decided.spec.foreign is None:
        return
    session.refresh_servers()
    tool = session.offer.get(decided.spec.name)
    if tool is None:
        raise _build_unknown_tool_error(session, pending)
    pending.tool = tool
    _check_description(pending, decided.spec)
    if pending.answer is not None and session.foreign is not None:
        session.foreign.approve(tool.spec)


def judge_call_changes(
    session: Session,
    pending: PendingCall,
    changes: tuple[Change, ...],
    configs: Mapping[str, str],
    list_tracked: Callable[[], frozenset[str]] = frozenset,
) -> Decision:
    """Decides about the changes that a command made in its overlay. `list_tracked` lists those that git tracks."""
    from handrail.policy.changeset import judge_changes  # noqa: PLC0415  few commands change something

    rules = pending.rules
    if rules is None:
        raise AssertionError("a command was judged before it ran")
    decision = judge_changes(
        changes,
        rules,
        undo=True,
        spoken_for=_is_approved(pending, rules),
        configs=configs,
        tool=pending.name,
        steering=_load_facts().list_steering_paths(session.workspace, changes),
        tracked=list_tracked() if _is_local_git(pending, rules) else None,
    )
    if decision.decision == "deny" or (decision.decision == "confirm" and pending.preview_id is None):
        pending.outcome_decision = decision  # the answer to a preview covers what needs approval in it
    if decision.decision == "deny":
        pending.warn(decision.code or "POLICY_DENIED", f"What {pending.name} changed was refused by {decision.rule}.")
    return decision


def decide_without_undo(pending: PendingCall) -> Decision | None:
    """The decision if undo does not cover what the command changes. None if that makes no difference."""
    command, rules = pending.facts.command, pending.rules
    if command is None or rules is None or pending.answer is not None:
        return None
    facts = replace(pending.facts, command=replace(command, tier=min(command.tier, 2), snapshot=False))
    decision = decide(pending.tool.spec, pending.call.requested_permissions, facts, rules)
    return decision if decision.decision != "allow" else None


def _is_approved(pending: PendingCall, rules: PolicyConfig) -> bool:
    """Whether a person, a rule or a grant allowed the call, rather than the mode."""
    if pending.answer is not None:
        return True
    by_mode = replace(rules, rules=(), grants=())
    return decide(pending.tool.spec, pending.call.requested_permissions, pending.facts, by_mode).decision != "allow"


def _is_local_git(pending: PendingCall, rules: PolicyConfig) -> bool:
    """Whether the grant for local git allowed the call, and nothing else did."""
    if pending.answer is not None or find_grant(rules.grants, StandingGrant.LOCAL_GIT) is None:
        return False
    ungranted = replace(rules, grants=())
    decision = decide(pending.tool.spec, pending.call.requested_permissions, pending.facts, ungranted)
    return decision.grants == (StandingGrant.LOCAL_GIT,)


# Facts


def resolve_touches(tool: Tool, arguments: Any, workspace: Workspace) -> Touches:
    """What a call declares, with the command that its tool builds from files of the workspace."""
    touched = tool.touches(arguments)
    return touched if touched.build_command is None else replace(touched, command=touched.build_command(workspace))


def collect_touched_facts(workspace: Workspace, touched: Touches) -> Facts:
    look = partial(_build_located_fact, touched.locate_error) if touched.locate_error else build_path_fact
    paths = [look(workspace, path, "read") for path in touched.reads]
    if touched.writes or touched.deletes:
        writes = [look(workspace, path, "write") for path in touched.writes]
        paths += [replace(fact, sets_mode=True) if fact.path in touched.modes else fact for fact in writes]
        paths += [look(workspace, path, "delete") for path in touched.deletes]
    use = touched.memory
    memory = MemoryFact(action=use.action, note=use.note) if use is not None else None
    return Facts(paths=tuple(paths), memory=memory, foreign=touched.foreign)


def _build_located_fact(
    locate_error: Callable[[ToolError, str], ToolError], workspace: Workspace, path: str, access: Access
) -> PathFact:
    try:
        return build_path_fact(workspace, path, access)
    except ToolError as error:
        raise locate_error(error, path) from None


def _collect_command_facts(session: Session, command: CommandUse) -> Facts:
    return _load_facts().collect_command_facts(
        session.workspace,
        command.text,
        command.cwd,
        background=command.background,
        yields=command.yields,
        tier=session.commands.find_tier(session.workspace.roots, background=command.background),
        host=lambda: session.commands.host,
        listed=session.commands.allowed_hosts,
    )


def _collect_process_facts(session: Session, use: ProcessUse) -> Facts:
    return _load_facts().collect_process_facts(use, lambda: session.background.sessions, lambda: session.commands.tier)


# Refusals


def render_refusal(pending: PendingCall, decision: Decision, code: ErrorCode) -> str:
    subject, action = clip_path(decision.subject), _name_action(pending, decision.subject)
    if code == "OUTSIDE_WORKSPACE":
        why = _find_closed_reason(pending, decision.subject)
        hint = "Paths are relative to it. Ask the user if you need it."
        return f"{subject} is outside the workspace{why and '; '}{why}. {hint}"
    if code == "PERMISSION_DENIED":
        return f"{action} {subject} needs approval: {decision.reason}. Nothing ran. Do not repeat this call."
    forbidden = f"Rule {decision.rule} forbids {action} {subject}: {decision.reason}."
    if decision.rule.startswith(SKILL):
        return f"{forbidden} Nothing ran. Use the allowed tools, or deactivate the skill when its task is done."
    return f"{forbidden} {REFUSAL_ADVICE}"


_GERUNDS: dict[str, str] = {"read": "reading", "write": "writing", "delete": "deleting"}


def _name_action(pending: PendingCall, subject: str) -> str:
    if pending.facts.foreign is not None:
        return "calling"
    access = next((fact.access for fact in pending.facts.paths if fact.path == subject), None)
    return _GERUNDS[access] if access else pending.name


def _find_closed_reason(pending: PendingCall, path: str) -> str:
    rules = pending.rules
    facts = (fact for fact in pending.facts.paths if rules is not None and rules.can_open(fact))
    return next((fact.closed_reason for fact in facts if fact.path == path), "")


def _refuse(pending: PendingCall, decision: Decision) -> ToolError:
    code = decision.code or "POLICY_DENIED"
    pending.warn(code, f"{pending.name} was refused by {decision.rule}: {decision.reason}.")
    message = render_refusal(pending, decision, code)
    return ToolError(code, message, details={"rule": decision.rule, "reason": decision.reason})


def _refuse_no_network(pending: PendingCall) -> None:
    """Refuses a command whose hosts cannot be opened here, before a person is asked about them."""
    command = pending.facts.command
    if command is not None and command.hosts and command.tier == 1:
        hosts = ", ".join(command.hosts[:3])
        text = f"It needs {hosts}, and the network is opened only in sandbox tier 2; here is tier 1. Nothing was run."
        raise ToolError("UNAVAILABLE", f"{text} Continue without it; `handrail doctor` tells the user more.")


def _build_unknown_tool_error(session: Session, pending: PendingCall) -> ToolError:
    session.refresh_servers()
    names = session.offer.names
    message = f"Unknown Agent tool: {escape_surrogates(pending.call.name)[:200]}"
    if session.foreign is not None and (why := session.foreign.why_gone(pending.call.name)):
        message = f"{message} ({why})"
    pending.warn("UNKNOWN_TOOL", message)
    near = find_similar(pending.call.name.lower(), names, 0.75)
    return ToolError("UNKNOWN_TOOL", message, details=list(names), warnings=(f"Did you mean {near}?",) if near else ())


def _check_description(pending: PendingCall, decided: ToolSpec | None = None) -> None:
    """Refuses the call if the server changed its description of the tool since the decision or the approval."""
    foreign, request = pending.tool.spec.foreign, pending.request
    if foreign is None:
        return
    known = {request.fingerprint if request is not None else None}
    known.add(decided.foreign.fingerprint if decided is not None and decided.foreign is not None else None)
    if known - {foreign.fingerprint, None, ""}:
        text = f"{pending.tool.spec.server} describes {pending.name} differently than at the decision about this call"
        raise ToolError("CONFLICT", f"{text}. Nothing was run. Call again.")


def _load_facts():  # the type is that of the module
    from handrail.runtime import facts  # noqa: PLC0415  tables that only commands need

    return facts
