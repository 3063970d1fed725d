"""Why a command is not run for want of a sandbox, in words for the model and for people."""

from handrail.sandbox.choice import TierChoice
from handrail.sandbox.probing.remedies import Diagnosis

_NOT_YOURS = "Nothing was run. It is not your fault, and not yours to mend: go on with file tools, or end."
_DOCTOR = "`handrail doctor` tells the person more."


def describe_no_network(found: TierChoice) -> str:
    """Of a command that is to reach a host, in a tier that can open none."""
    failure = next((failure for failure in found.failures if failure.tier == 2), None)
    why = failure.reason if failure else "settings allow no better one"
    text = f"The network can be opened to a command only in sandbox tier 2, and here is tier {found.tier} ({why})"
    return f"{text}. Nothing was run. Call without the network, or end." + _typed(failure.fix if failure else None)


def describe_weak_tier(found: TierChoice, least: int) -> str:
    """Where settings ask for more than there is."""
    above = [failure for failure in found.failures if failure.tier >= min(least, 2)]
    reasons = "; ".join(f"tier {failure.tier}: {failure.reason}" for failure in above)
    fix = next((failure.fix for failure in found.failures if failure.fix), None)
    text = f"Commands must be confined by tier {least} at least, and here the best is tier {found.tier}"
    return f"{text} ({reasons or 'settings allow no better one'}). Nothing was run.{_typed(fix)}"


def describe_missing_overlay(why: Diagnosis | None) -> str:
    """Where settings ask for an overlay, and a command that may change files gets none."""
    text = "Settings ask for sandbox tier 3 (sandbox.least): what a command changes must go into an overlay"
    if why is None:
        reason, advice = "one that goes on in the background gets none", "Call it without background and yieldMs."
    else:
        reason, advice = why.reason, "Commands that only look still run, and so do file tools."
    return f"{text}, and {reason}. Nothing was run. {advice}{_typed(why.fix if why else None)}"


def describe_overlay_failure(said: str) -> str:
    """Where an overlay was believed to work, and could not be put over the workspace."""
    text = f"The overlay for what the command changes could not be put over the workspace ({said})"
    return f"{text}. Nothing was run. Call again: it will run without one, or be asked about. {_DOCTOR}"


def describe_sandbox_failure(tier: int, printed: str) -> str:
    """Where a sandbox was believed to work, and could not be made."""
    said = next((line for line in reversed(printed.split("\n")) if line.strip()), "it ended without a word")
    text = f"Commands cannot run now: the sandbox (tier {tier}) could not be made ({said.strip()[:300]})."
    return f"{text} {_NOT_YOURS} {_DOCTOR}"


def _typed(fix: str | None) -> str:
    return f" A person can type: {fix}" if fix else ""
