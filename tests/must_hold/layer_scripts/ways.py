"""The ways to run a script: directly on the tree, through a layer, and by a call of exec."""

import shutil
import subprocess
from pathlib import Path

from handrail import Handrail
from handrail.changes.model import CommandPreview
from handrail.changes.overlay.changes import examine
from handrail.changes.overlay.commit import commit
from handrail.changes.overlay.previews import delete_preview, load_preview, save_preview
from handrail.process.result import CommandResult
from handrail.process.run import run_launch
from handrail.protocol.decisions import Mode
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.overlay.overlay import Overlay
from handrail.sandbox.profile import SandboxProfile
from handrail.settings import Settings

MODES: tuple[Mode, ...] = ("full", "auto", "ask")
SCRIPT = "script.sh"
COMMAND = f"bash {SCRIPT}"
"""What policy sees of a script: few would be short enough to be looked into."""

_IN_A_LAYER = SandboxUsed(tier=3, net="none", undo="layer")


class Ground:
    """One workspace in which scripts run one after the other, and the sessions over it."""

    def __init__(self, place: Path) -> None:
        self.workspace = place / "workspace"
        self.workspace.mkdir()
        self.rails = {mode: self._open(place / "state", mode) for mode in MODES}
        self._session = self.rails["full"]._session
        self._path = self._session.workspace.main.path
        self._calls = 0

    def _open(self, state: Path, mode: Mode) -> Handrail:
        return Handrail(
            self.workspace,
            mode=mode,
            session=mode,
            state_dir=state,
            settings=Settings(),
            on_permission=lambda _: "once",
        )

    def close(self) -> None:
        for rail in self.rails.values():
            rail.close()

    def why_no_layer(self) -> str | None:
        return self._session.commands.find_overlay_obstacle(self._session.workspace.roots)

    def fill(self, start: Path) -> None:
        """Makes the workspace a copy of a tree. The folder itself stays: sessions hold it."""
        empty(self.workspace)
        subprocess.run(["cp", "-a", "--", f"{start}/.", str(self.workspace)], check=True)

    def directly(self) -> CommandResult:
        """In the same sandbox, with nothing between the script and the tree."""
        return self._run(None)

    def layered(self, *, sealed: bool) -> bool:
        """In a layer, which is examined and kept: from where it lies, or from what was put by. Whether there was
        something to keep."""
        session = self._session
        recorder, workspace = session.recorder, session.workspace
        self._calls += 1
        call = f"call-{self._calls}"
        with session.commands.sandbox.create_overlay((self._path,)) as layer:
            ran = self._run(layer)
            trial = CommandPreview(ran=ran, examined=examine(workspace, layer), sandbox=_IN_A_LAYER)
            name = save_preview(workspace, recorder.history, trial, layer) if sealed else ""
            if trial.examined.steps and not sealed:
                commit(workspace, recorder, trial.examined, layer, session_id="full", call_id=call, summary="script")
        if name:
            trial = load_preview(recorder.history, name)
            if trial.examined.steps:
                commit(workspace, recorder, trial.examined, None, session_id="full", call_id=call, summary="script")
            delete_preview(recorder.history, name)
        return bool(trial.examined.steps)

    def called(self, mode: Mode) -> bool:
        """By exec, as an agent calls it. Whether something was changed."""
        result = self.rails[mode].call("exec", {"command": COMMAND})
        assert result.error is None, result.error
        assert result.meta.sandbox is not None
        assert result.meta.sandbox.tier == 3, result.meta.sandbox
        return self.rails[mode]._session.recorder.made_by(result.tool_call_id) is not None

    def undo(self, mode: Mode) -> None:
        result = self.rails[mode].undo()
        assert result.ok, result.error

    def _run(self, layer: Overlay | None) -> CommandResult:
        commands = self._session.commands
        confinement = SandboxProfile(origin="unasked", cwd=self._path, read_only=(), writable=(self._path,))
        ran = run_launch(
            commands.sandbox.launch(confinement, COMMAND, layer),
            limits=confinement.limits,
            cancelled=lambda: False,
            spill_folder=commands.spill_folder,
        )
        assert ran.ending == "exit", ran
        assert ran.exit_code == 0, ran
        return ran


def empty(folder: Path) -> None:
    """Removes all in a folder, whatever scripts closed in it."""
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], check=True)
    for one in folder.iterdir():
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        else:
            one.unlink()
