"""One more way to run an attack: in mode `ask`, where nobody answers."""

from pathlib import Path
from typing import Any

from tests.escape.attack import TRIED
from tests.escape.case import Trust
from tests.escape.corpus.exhausting import FILE_MEGABYTES, MEGABYTES, PROCESSES
from tests.escape.ways import Answer, run_bare

from handrail import Handrail
from handrail.protocol.permissions import AnswerKind
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Limits, Sandbox

_SECONDS = 10


class ByAsking:
    """Runs commands by exec, each workspace with a session of its own. No request of an attack is answered."""

    def __init__(self, place: Path, *, granted: bool) -> None:
        self._place = place
        self._granted = granted
        self._rails: dict[str, Handrail] = {}

    def available(self) -> bool:
        """Whether there are previews here."""
        results = [self._open(name).exec("python3 -c 1") for name in ("workspace", "repositories")]
        return all(result.meta.answered_by == "preview" for result in results)

    def run(self, command: str, workspace: str, cwd: str, trust: Trust) -> Answer:
        rail = self._rails[workspace]
        result = rail.call("exec", {"command": command, "cwd": cwd, "timeoutMs": _SECONDS * 1000})
        printed = result.data.output if result.data else ""
        asked = [one for one in rail.waiting() if one.tool_call_id == result.tool_call_id]
        # What the preview printed counts too, although no model reads it. Without a preview nothing ran.
        previews = [one.preview for one in asked]
        printed += "".join((one.output or "") if one and one.kind == "run" else TRIED for one in previews)
        return Answer(ran=bool(result.data or asked), text=f"{printed}\n{result.content}")

    def close(self) -> None:
        for rail in self._rails.values():
            rail.close()

    def _open(self, workspace: str) -> Handrail:
        place = self._place
        shown = (str(place / "shown"), str(place / "shown-sockets"))
        limits = Limits(
            exec=f"{_SECONDS}s", memory=f"{MEGABYTES} MB", processes=PROCESSES, file_size=f"{FILE_MEGABYTES} MB"
        )
        settings = Settings(sandbox=Sandbox(toolchains=shown), limits=limits)
        rail = Handrail(
            place / workspace, mode="ask", state_dir=place / "state", settings=settings, on_permission="park"
        )
        self._rails[workspace] = rail
        if self._granted:
            run_bare("git init -q granted", place / workspace, str(place), careless=False)
            _answer(rail, rail.call("write", {"path": "granted/one.txt", "content": "granted\n"}), "edits")
            _answer(rail, rail.call("exec", {"command": "git add one.txt", "cwd": "granted"}), "session")
        return rail


def _answer(rail: Handrail, result: ToolResult[Any], kind: AnswerKind) -> None:
    request = next((one for one in rail.waiting() if one.tool_call_id == result.tool_call_id), None)
    assert request is not None, result
    rail.answer(request, kind)
