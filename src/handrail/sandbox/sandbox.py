"""Confines commands as well as this machine can, and says how well that is."""

import math
import time
from threading import Lock

from handrail.protocol.decision import LAYERED
from handrail.protocol.error import ToolError
from handrail.sandbox import choice
from handrail.sandbox.choice import Choice, choose, identity
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.host import Host
from handrail.sandbox.launch import Launch
from handrail.sandbox.layer import layers
from handrail.sandbox.layer.layer import Layer
from handrail.sandbox.layer.layers import Layers
from handrail.sandbox.layer.mounting import NOT_MOUNTED
from handrail.sandbox.layer.probe import said_of
from handrail.sandbox.namespaces.preparing import Preparing
from handrail.sandbox.probing.remedies import Remedy
from handrail.sandbox.refusals import layer_failed, no_network, sandbox_failed, too_weak, without_layer
from handrail.sandbox.report import Failure, Report, held_in_memory_only, report
from handrail.sandbox.text import check_text
from handrail.sandbox.view.mounts import within
from handrail.sandbox.view.view import surroundings


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
        self._layers = Layers(host)

    @property
    def tier(self) -> int:
        """The tier in use; found out by doing the first time."""
        return self._chosen().tier

    def report(self, roots: tuple[str, ...] = (), without: Failure | None = None) -> Report:
        """What the tier in use gives, what it does not, and why it is no better one; of commands that may change these
        roots, where there are any. `without`: why they have no layer for what lies in them, which nobody looks at
        here."""
        found = self._chosen()
        why = self._why_no_layer(roots) if roots and self._most >= LAYERED else None
        if not roots or self._most < LAYERED or found.tier < 2:
            return report(found.tier, found.program, found.failures)
        failure = Failure(tier=LAYERED, reason=why.reason, fix=why.fix) if why is not None else without
        if failure is None:
            return report(LAYERED, found.program, found.failures, self._layers.most(roots))
        return report(found.tier, found.program, (failure, *found.failures))

    def why_no_layer(self, roots: tuple[str, ...]) -> str | None:
        """Why no layer can lie over these roots, in words; None where one can: then `new_layer` makes it."""
        why = self._why_no_layer(roots)
        return why.reason if why else None

    def gaps_of_layer(self, roots: tuple[str, ...]) -> tuple[str, ...]:
        """What a layer over these roots does not give, in words."""
        most = self._layers.most(roots)
        return () if most is None else (held_in_memory_only(most),)

    def knows_one_user(self, roots: tuple[str, ...]) -> bool:
        """Whether files of other users and groups cannot be changed under a layer over these roots."""
        return self._layers.own_users(roots)

    def shows(self, path: str, roots: tuple[str, ...]) -> bool:
        """Whether a command with these roots sees what lies there."""
        return any(within(path, root) for root in roots) or surroundings(self._host, roots).shows(path)

    def new_layer(self, roots: tuple[str, ...], below: tuple[Layer, ...] = ()) -> Layer:
        """A new layer over roots; `below`: layers that it lies on, the latest first. It serves for one launch. OSError
        where there is no room for it."""
        return self._layers.new(roots, below)

    def launch(self, confinement: Confinement, text: str, layer: Layer | None = None, *, waits: bool = False) -> Launch:
        """A command that is ready to be started, under a layer where there is one. `waits`: it need not begin before it
        is let; the launch says whether it waits. ToolError where it cannot be confined as it must be."""
        check_text(text)
        found = self._chosen()
        if found.tier < min(self._least, 2):
            raise ToolError("SANDBOX_UNAVAILABLE", too_weak(found, self._least))
        if self._least >= LAYERED and layer is None and confinement.writable and not confinement.only_looks:
            why = self._why_no_layer(confinement.writable)
            raise ToolError("SANDBOX_UNAVAILABLE", without_layer(why))
        if self._preparing is not None:
            return self._preparing.launch(confinement, text, layer, waits=waits)
        if layer is not None:  # it would run, and change the files themselves
            raise ToolError("SANDBOX_UNAVAILABLE", layer_failed("the sandbox around it does not work any more"))
        if confinement.proxy:
            raise ToolError("UNAVAILABLE", no_network(found))
        from handrail.sandbox.supervision.launching import launch_supervised  # noqa: PLC0415  where tier 2 does not work

        return launch_supervised(confinement, self._host, text, found.tier)

    def failed(self, printed: str, layer: Layer | None = None) -> ToolError:
        """What to say of a launch that did not come to run its command; what was found out is forgotten, and that a
        layer could not be mounted is remembered."""
        if layer is not None and NOT_MOUNTED in printed:
            said = said_of(printed) or "it cannot be mounted"
            self._layers.failed(layer, said)
            return ToolError("SANDBOX_UNAVAILABLE", layer_failed(said.rpartition(": ")[2]))  # without paths
        tier = self._chosen().tier
        self.forget()
        return ToolError("SANDBOX_UNAVAILABLE", sandbox_failed(tier, printed))

    def forget(self) -> None:
        """Lets go of what was found out about this machine; the next command finds out anew."""
        choice.forget()
        layers.forget()
        self._choice = None

    def close(self) -> None:
        """Waits until layers are gone that were thrown away; can be repeated, and new ones can be made."""
        self._layers.close()

    def _why_no_layer(self, roots: tuple[str, ...]) -> Remedy | None:
        found = self._chosen()
        if self._most < LAYERED:
            return Remedy(f"settings ask for none: sandbox.tier is {self._most}", None)
        if found.tier >= 2:
            return self._layers.why_not(roots)
        failure = next((failure for failure in found.failures if failure.tier == 2), None)
        why = failure.reason if failure else "settings allow no better one"
        return Remedy(f"a layer takes sandbox tier 2, and here is tier {found.tier} ({why})", None)

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
