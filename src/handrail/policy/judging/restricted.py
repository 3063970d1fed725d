"""The restricted profile: a short list of commands, a few folders, and nothing asks."""

import re

from handrail.policy.configuration import PolicyConfig, RestrictedProfile
from handrail.policy.judging.judged import PartVerdict, allow, deny
from handrail.policy.names import find_protection
from handrail.protocol.decision import PathFact


def restrict_path(
    judged: PartVerdict, fact: PathFact, rules: PolicyConfig, restriction: RestrictedProfile
) -> PartVerdict:
    """Inside the named folders a file may be used as the mode would let it after a yes; elsewhere not at all."""
    subject = judged.part.subject
    if judged.part.decision == "deny":
        return judged
    if fact.real is None or not _is_in(fact.real, restriction) or not _is_in(fact.named or fact.real, restriction):
        named = ", ".join(restriction.folders)
        return deny(subject, "restricted.path", f"the restricted profile uses files in {named} only")
    if fact.access != "read" and (rules.mode == "plan" or find_protection(fact.real) is not None):
        return deny(subject, "restricted.path", "the restricted profile does not change this file")
    return allow(subject, "restricted.path", "the restricted profile uses files in this folder")


def restrict_command(
    judged: PartVerdict, words: tuple[str, ...], restriction: RestrictedProfile, *, proven: bool
) -> PartVerdict:
    """A listed command runs if it is proven, or is exactly what is listed; not what a rule asks about."""
    subject = judged.part.subject
    if judged.part.decision == "deny" or (judged.part.decision == "confirm" and judged.final):
        return judged
    for command in restriction.commands:
        listed = tuple(command.split())
        if words == listed or (proven and judged.part.decision == "allow" and _continues(words, listed)):
            return allow(subject, "restricted.command", "the restricted profile runs this command")
    return deny(subject, "restricted.command", "the restricted profile runs only the commands it lists")


_OF_GIT = re.compile(
    r"-n|-?\d{1,9}|-n\d{1,9}|--max-count=\d{1,9}|--(?:no-)?decorate|--graph|--reverse|--all|-s|-b|-sb|--short|--branch"
    r"|--porcelain(?:=v?[12])?"
)
"""What may be added to a command of git: how many, and how they are shown. All else may show other folders …"""
_BEYOND = re.compile(r"-[A-Za-z0-9]*[RLH].*|--recursive|--dereference.*")
"""… and so may these of ls."""


def _continues(words: tuple[str, ...], listed: tuple[str, ...]) -> bool:
    added = words[len(listed) :]
    if words[: len(listed)] != listed:
        return False
    if words[0] == "git":
        return all(_OF_GIT.fullmatch(word) for word in added)
    return words[0] != "ls" or not any(_BEYOND.fullmatch(word) for word in added)


def _is_in(path: str, restriction: RestrictedProfile) -> bool:
    names = path.split("/")
    return any(
        names[: len(folder)] == folder for folder in (name.strip("/").split("/") for name in restriction.folders)
    )
