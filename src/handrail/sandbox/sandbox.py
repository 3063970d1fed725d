"""Confines commands as well as this machine can, and says how well that is."""

import math
import os
import time
from threading import Lock

from handrail.protocol.error import ToolError
from handrail.sandbox import choice
from handrail.sandbox.choice import Choice, choose, identity
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.host import Host
from handrail.sandbox.launch import Launch
from handrail.sandbox.layer.fitness import why_no_layer
from handrail.sandbox.layer.layer import Layer
from handrail.sandbox.namespaces.preparing import Preparing
from handrail.sandbox.report import Report, report
from handrail.sandbox.text import check_text


class Sandbox:
    """Starts commands in the best tier that works, up to `most`; refuses where that is below `least`."""

    def __init__(self, host: Host, *, most: int = 3, least: int = 0) -> None:
        self._host = host
        self._most = most
        self._least = least
        self._lock = Lock()
        self._choice: Choice | None = None
        self._preparing: Preparing | None = None
        self._identity: tuple[int, ...] | None = None
        self._until = 0.0

    @property
    def tier(self) -> int:
        """The tier in use; found out by doing the first time."""
        return self._chosen().tier

    def report(self) -> Report:
        """What the tier in use gives, what it does not, and why it is no better one."""
        found = self._chosen()
        return report(found.tier, found.program, found.failures)

    def why_no_layer(self, roots: tuple[str, ...]) -> str | None:
        """Why no layer can lie over these roots, in words; None where one can: then `new_layer` makes it."""
        if self._chosen().tier < 2 or self._most < 3:
            return "the sandbox here has no layers"
        return why_no_layer(roots)

    def new_layer(self, roots: tuple[str, ...], below: tuple[Layer, ...] = ()) -> Layer:
        """A new layer over roots; `below`: layers that it lies on, the latest first."""
        return Layer(os.path.join(self._host.state, "layers", os.urandom(8).hex()), roots, below)

    def launch(self, confinement: Confinement, text: str, layer: Layer | None = None) -> Launch:
        """A command that is ready to be started, under a layer where there is one. ToolError where it cannot be
        confined as it must be."""
        check_text(text)
        found = self._chosen()
        if found.tier < self._least:
            raise ToolError("SANDBOX_UNAVAILABLE", _too_weak(found, self._least))
        if self._preparing is not None:
            return self._preparing.launch(confinement, text, layer)
        if confinement.proxy:
            raise ToolError("UNAVAILABLE", _no_network(found))
        from handrail.sandbox.supervision.launching import launch_supervised  # noqa: PLC0415  where tier 2 does not work

        return launch_supervised(confinement, self._host, text, found.tier)

    def failed(self, printed: str) -> ToolError:
        """What to say of a launch that did not come to run its command; what was found out is forgotten."""
        tier = self._chosen().tier
        self.forget()
        said = next((line for line in reversed(printed.split("\n")) if line.strip()), "it ended without a word")
        text = f"Commands cannot run now: the sandbox (tier {tier}) could not be made ({said.strip()[:300]})."
        advice = "Nothing was run. It is not your fault, and not yours to mend: go on with file tools, or end."
        return ToolError("SANDBOX_UNAVAILABLE", f"{text} {advice} `handrail doctor` tells the person more.")

    def forget(self) -> None:
        """Lets go of what was found out about this machine; the next command finds out anew."""
        choice.forget()
        self._choice = None

    def _chosen(self) -> Choice:
        found = self._choice
        if found is None or time.monotonic() >= self._until or self._is_another(found):
            with self._lock:
                found = self._choose()
        return found

    def _is_another(self, found: Choice) -> bool:
        return found.program is not None and identity(found.program.path) != self._identity

    def _choose(self) -> Choice:
        found = choose(self._host, self._most)
        self._until = time.monotonic() + choice.SECONDS_TO_BELIEVE if found.failures else math.inf
        self._identity = identity(found.program.path) if found.program else None
        self._preparing = Preparing(found.program, self._host) if found.program else None
        self._choice = found
        return found


def _no_network(found: Choice) -> str:
    failure = next((failure for failure in found.failures if failure.tier == 2), None)
    why = failure.reason if failure else "settings allow no better one"
    text = f"The network can be opened to a command only in sandbox tier 2, and here is tier {found.tier} ({why})"
    advice = "Nothing was run. Call without the network, or end."
    return f"{text}. {advice}" + (f" A person can type: {failure.fix}" if failure and failure.fix else "")


def _too_weak(found: Choice, least: int) -> str:
    reasons = "; ".join(f"tier {failure.tier}: {failure.reason}" for failure in found.failures if failure.tier >= least)
    fix = next((failure.fix for failure in found.failures if failure.fix), None)
    why = "tier 3 is not part of this version" if least > 2 else "settings allow no better one"
    text = f"Commands must be confined by tier {least} at least, and here the best is tier {found.tier}"
    return f"{text} ({reasons or why}). Nothing was run." + (f" A person can type: {fix}" if fix else "")
