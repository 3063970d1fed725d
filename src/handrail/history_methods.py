"""What a person can see of changes and take back, as methods of the library."""

from typing import TYPE_CHECKING

from handrail.entering import Entering

if TYPE_CHECKING:
    from handrail.changes.line_origin import LineOrigin
    from handrail.protocol.change import ChangeRecord
    from handrail.protocol.result import ToolResult
    from handrail.runtime.person import Resolve
    from handrail.tools.undo import UndoData


class HistoryMethods(Entering):
    """Whatever has a session with changes."""

    def changes(self, limit: int = 20) -> "list[ChangeRecord]":
        """The last change sets of this workspace, whatever the session, the latest first."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.last_changes, self._session, limit)

    def diff(self, number: int | None = None) -> str:
        """The differences that a change set made; without a number, the last one in effect."""
        return self.numbered_diff(number)[1]

    def numbered_diff(self, number: int | None = None) -> tuple[int, str]:
        """The same, and which change set it is."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.diff_of, self._session, number)

    def turn_diff(self) -> tuple[tuple[int, ...], str]:
        """The differences that the change sets of the last turn made, one after the other, and their numbers."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.diff_of_turn, self._session)

    def undo(
        self,
        number: int | tuple[int, ...] | None = None,
        *,
        turn: bool = False,
        session: str | None = None,
        resolve: "Resolve | None" = None,
    ) -> "ToolResult[UndoData]":
        """Takes a change set of this workspace back: the last one, one or several by number, all of the last turn or
        all of a session.

        A file that was changed since is never overwritten: CONFLICT says by what. `resolve="later"` takes the later
        changes back too; `resolve="lines"` takes back only what is as it was left.
        """
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.undo, self._session, person.choice(number, turn, session), resolve)

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

        return self._enter(person.preview, self._session, person.choice(number, turn, session), resolve)

    def redo(self, *, resolve: "Resolve | None" = None) -> "ToolResult[UndoData]":
        """Takes the last undo back."""
        from handrail.runtime import person  # noqa: PLC0415  few take anything back

        return self._enter(person.undo, self._session, person.last_undo, resolve)

    def line_origin(self, path: str, line: int) -> "tuple[str, str, LineOrigin]":
        """Where a line of a file comes from: the path as results name it, the line as it is now, and the change set
        that made it, as far as that is known. ToolError where there is no such line."""
        from handrail.runtime.line_history import origin_of_line  # noqa: PLC0415  few ask

        return self._enter(origin_of_line, self._session, path, line)
