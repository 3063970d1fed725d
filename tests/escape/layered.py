"""Two more ways to run an attack: in a layer that is thrown away, as tier 3 does, and in one with no sandbox in it."""

import os
import subprocess
from pathlib import Path

from tests.escape.case import Trust
from tests.escape.corpus.exhausting import FILE_MEGABYTES, MEGABYTES, PROCESSES
from tests.escape.ways import Answer

from handrail.process.run import run_launch
from handrail.sandbox.overlay.overlay import Overlay, wrap_in_overlay
from handrail.sandbox.profile import MEGABYTE, ResourceLimits, SandboxHost, SandboxProfile
from handrail.sandbox.sandbox import CommandSandbox
from handrail.workspace.roots import Root
from handrail.workspace.sensitive_paths import SensitivePaths, list_read_only_paths

UNCONFINED_LAYER = -2
_SECONDS = 10.0
_LIMITS = ResourceLimits(
    seconds=_SECONDS, memory=MEGABYTES * MEGABYTE, processes=PROCESSES, file_size=FILE_MEGABYTES * MEGABYTE
)
_CLEAN = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8"}


class ByLayer:
    """Runs commands in layers over a workspace and the folder of a session, which nothing is ever kept of."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._state = place / "state"
        (self._state / "printed").mkdir(parents=True, exist_ok=True)
        (self._state / "sessions/own/files").mkdir(parents=True, exist_ok=True)
        shown = (str(place / "shown"), str(place / "shown-sockets"))
        host = SandboxHost(home=str(place / "home"), environ=os.environ, state=str(self._state), toolchains=shown)
        self._sandbox = CommandSandbox(host)
        self._withheld = SensitivePaths()

    def available(self) -> bool:
        """Whether layers work here."""
        return self._sandbox.find_overlay_obstacle(self._roots("workspace")) is None

    def run(self, command: str, workspace: str, cwd: str, trust: Trust) -> Answer:
        roots = self._roots(workspace)
        with self._sandbox.create_overlay(roots) as layer:
            ran = run_launch(
                self._sandbox.launch(self._confinement(roots, cwd, trust), command, layer),
                limits=_LIMITS,
                cancelled=lambda: False,
                spill_folder=str(self._state / "printed"),
            )
        assert ran.ending != "failed", ran.output.head
        return Answer(ran=True, text=(ran.output.head + ran.output.tail).decode("utf-8", "replace"))

    def close(self) -> None:
        self._sandbox.close()
        left = os.listdir(self._state / "layers") if (self._state / "layers").exists() else []
        assert not left, f"of a layer is left: {left}"

    def _roots(self, workspace: str) -> tuple[str, ...]:
        return tuple(os.path.realpath(path) for path in (self._place / workspace, self._state / "sessions/own/files"))

    def _confinement(self, roots: tuple[str, ...], cwd: str, trust: Trust) -> SandboxProfile:
        opened = [Root(path) for path in roots]
        try:
            found, protected = self._withheld.scan(opened), list_read_only_paths(opened)
        finally:
            for root in opened:
                root.close()
        approved = trust == "approved"
        return SandboxProfile(
            origin=trust,
            cwd=os.path.join(roots[0], cwd),
            read_only=(),
            writable=roots,
            read_only_paths=protected,
            hidden_files=(*found.sockets, *(() if approved else found.credentials)),
            hidden_folders=() if approved else found.credential_folders,
            limits=_LIMITS,
        )


class ByUnconfinedLayer:
    """Runs commands under a layer with nothing else around them: who gets past it there was kept back by the rest."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def available(self) -> bool:
        return True

    def run(self, command: str, workspace: str, cwd: str, trust: Trust) -> Answer:
        root = os.path.realpath(self._place / workspace)
        folder = self._place / "state/layers" / os.urandom(4).hex()
        layer = Overlay(str(folder), (root,))
        try:
            start = ("/bin/bash", "-c", f"cd {root}/{cwd} && {command}")
            done = subprocess.run(
                wrap_in_overlay(start, layer),
                env=_CLEAN,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS * 3,
                check=False,
            )
        finally:
            layer.remove()
        return Answer(ran=True, text=done.stdout.decode("utf-8", "replace"))

    def close(self) -> None:
        pass
