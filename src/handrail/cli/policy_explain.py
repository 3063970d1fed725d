"""policy explain: what policy decides about a command or a call, and why."""

from argparse import Namespace
from contextlib import closing

from handrail.cli.exits import FAILED, OK, USAGE, WAITING
from handrail.cli.given import given_lines
from handrail.cli.output import answer, answer_json, note
from handrail.cli.policy_place import PolicyPlace
from handrail.cli.policy_question import Question, question_of, question_of_line
from handrail.protocol.decision import Decision
from handrail.protocol.error import ToolError
from handrail.protocol.wire import encode
from handrail.runtime.explaining import ASSUMED_TIER
from handrail.tools.exec import EXEC

_SCHEMA = "handrail.policy/1"
_ASSUMED = f"as in a sandbox of tier {ASSUMED_TIER}; handrail does not run commands yet"
_EXITS = {"allow": OK, "deny": FAILED, "confirm": WAITING}
_WORST_FIRST = (USAGE, FAILED, WAITING, OK)


def run(options: Namespace) -> int:
    """Explains one call, or one a line."""
    question = question_of(options)
    with closing(_Asking(options)) as asking:
        return _one(asking, question, options) if question else _lines(asking, options)


class _Asking:
    """Puts questions to policy."""

    def __init__(self, options: Namespace) -> None:
        self._place = PolicyPlace(options, options.mode)
        self._about = {
            "tier": ASSUMED_TIER if options.tier is None else options.tier,
            "tierAssumed": options.tier is None,
        }
        self._explainer = self._place.explainer(self._about["tier"])

    def close(self) -> None:
        self._explainer.close()

    def decision(self, question: Question) -> Decision:
        return self._explainer.explain(question.tool, question.args, self._place.rules(question.mode))

    def mode(self, question: Question) -> str:
        return self._place.rules(question.mode).mode

    def answer(self, question: Question, decision: Decision) -> bytes:
        body = {"schema": _SCHEMA, "decision": decision.decision, "rule": decision.rule, "reason": decision.reason}
        if decision.code is not None:
            body["code"] = decision.code
        return encode({**body, "parts": decision.parts, "mode": self.mode(question), **self._about})


def _one(asking: _Asking, question: Question, options: Namespace) -> int:
    try:
        decision = asking.decision(question)
    except ToolError as error:
        if options.json:
            answer_json(_failure(error))
        else:
            note(f"{error.code}: {error.message}")
            if error.code == "UNKNOWN_TOOL":
                note(f"The tools here: {', '.join(error.details)}.")
        return USAGE
    if options.json:
        answer_json(asking.answer(question, decision))
    else:
        from handrail.cli.policy_tree import decision_tree  # noqa: PLC0415  for people

        assumed = question.tool == EXEC.name and options.tier is None
        answer(decision_tree(question.called, decision, asking.mode(question), _ASSUMED if assumed else ""))
    return _EXITS[decision.decision] if options.exit_code else OK


def _lines(asking: _Asking, options: Namespace) -> int:
    """One answer for each line, also for one that cannot be understood, so that a program can count on it."""
    exits = {OK}
    for line in given_lines():
        try:
            question = question_of_line(line, options.cwd)
            decision = asking.decision(question)
            told, code = asking.answer(question, decision), _EXITS[decision.decision] if options.exit_code else OK
        except ToolError as error:
            told, code = _failure(error), USAGE
        exits.add(code)
        if not answer_json(told):
            break
    return next(code for code in _WORST_FIRST if code in exits)


def _failure(error: ToolError) -> bytes:
    told = {"code": error.code, "message": error.message}
    if error.details is not None:
        told["details"] = error.details
    return encode({"schema": _SCHEMA, "error": told})
