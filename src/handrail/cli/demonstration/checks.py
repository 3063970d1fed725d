"""Whether everything in the demo came out as it should."""

from typing import Any

from handrail.agent.turn import Turn
from handrail.api import Handrail
from handrail.cli.demonstration.sample import BROKEN, MENDED
from handrail.protocol.events import Event, ToolCallEnd, ToolCallError
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult


class DemoResults:
    """The results of the demo's calls, as their events told them."""

    def __init__(self) -> None:
        self.results: list[ToolResult[Any]] = []

    def add(self, event: Event) -> None:
        """Keeps the result of a call."""
        if isinstance(event, ToolCallEnd | ToolCallError):
            self.results.append(event.result)

    def list_results(self, name: str) -> list[ToolResult[Any]]:
        """The results of one tool."""
        return [one for one in self.results if one.name == name]


class DemoChecks:
    """What was looked at, and what of it is wrong."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def expect(self, what: str, holds: bool) -> None:
        """Notes what does not hold."""
        if not holds:
            self.wrong.append(what)

    def check_turn(self, turn: Turn, record: DemoResults, asked: list[PermissionRequest]) -> None:
        """Whether the turn went as its script says."""
        codes = [get_exit_code(one) for one in record.list_results("exec")]
        denied = [one.error.code for one in record.list_results("read") if one.error is not None]
        self.expect("the turn is done", turn.reason == "done")
        self.expect("the tests failed before, and passed after", codes == [1, 0])
        self.expect("the credentials stayed closed", denied == ["POLICY_DENIED"])
        self.expect("three calls asked", len(asked) == 3)
        self.expect(
            "the changes can be taken back", any(one.meta.undo is not None for one in record.list_results("edit"))
        )

    def check_files(self, rail: Handrail, *, mended: bool) -> None:
        """Whether the files are as they should be now."""
        content = rail.read("cart.py").content
        here, gone = (MENDED, BROKEN) if mended else (BROKEN, MENDED)
        right = here.strip() in content and gone.strip() not in content
        self.expect(f"cart.py is {'mended' if mended else 'as it was'}", right)
        lists = (rail.read("prices.old").ok, rail.read("prices.txt").ok)
        self.expect(f"the price list is {'new' if mended else 'as it was'}", lists == (not mended, mended))


def get_exit_code(result: ToolResult[Any]) -> int | None:
    """Of a command."""
    return getattr(result.data, "exit_code", None)
