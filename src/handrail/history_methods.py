"""What a person can see of changes and undo, as methods of the library."""

from typing import TYPE_CHECKING

from handrail.entering import CallGate

if TYPE_CHECKING:
    from handrail.changes.line_origin import LineOrigin
    from handrail.protocol.changes import ChangeRecord
    from handrail.protocol.results import ToolResult
    from handrail.runtime.person import Resolve
    from handrail.tools.undo import UndoData


class HistoryMethods(CallGate):
    """Whatever has a session with changes."""

    def changes(self, limit: int = 20) -> "list[ChangeRecord]":
        """The last change sets of this workspace, whatever the session, the latest first."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.list_last_changes, self._session, limit)

    def diff(self, number: int | None = None) -> str:
        """The differences that a change set made; without a number, the last one in effect."""
        return self.numbered_diff(number)[1]

    def numbered_diff(self, number: int | None = None) -> tuple[int, str]:
        """The same, and which change set it is."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.read_diff, self._session, number)

    def turn_diff(self) -> tuple[tuple[int, ...], str]:
        """The differences that the change sets of the last turn made, one after the other, and their numbers."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.read_turn_diff, self._session)

    def undo(
        self,
        number: int | tuple[int, ...] | None = None,
        *,
        turn: bool = False,
        session: str | None = None,
        resolve: "Resolve | None" = None,
    ) -> "ToolResult[UndoData]":
        """Undoes a change set of this workspace: the last one, one or several by number, all of the last turn or
        all of a session.

        A file that was changed since is never overwritten: CONFLICT says by what. `resolve="later"` undoes the later
        changes too; `resolve="lines"` undoes only what is as it was left.
        """
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.undo, self._session, person.select_change_sets(number, turn, session), resolve)

    def preview_undo(
        self,
        number: int | None = None,
        *,
        turn: bool = False,
        session: str | None = None,
        resolve: "Resolve | None" = None,
    ) -> str:
        """The differences that an undo would make; ToolError when it would be refused."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.preview, self._session, person.select_change_sets(number, turn, session), resolve)

    def redo(self, *, resolve: "Resolve | None" = None) -> "ToolResult[UndoData]":
        """Undoes the last undo."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.undo, self._session, person.select_last_undo, resolve)

    def line_origin(self, path: str, line: int) -> "tuple[str, str, LineOrigin]":
        """Where a line of a file comes from: the path as results name it, the line as it is now, and the change set
        that made it, as far as that is known. ToolError where there is no such line."""
        from handrail.runtime.line_history import find_line_origin  # noqa: PLC0415  few ask

        return self._enter(find_line_origin, self._session, path, line)
