"""Which roots there are now. Some come and go: folders that a person opens, for a while or for one call."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from handrail.workspace.place import SpelledPath, find_innermost_root, parse_path
from handrail.workspace.root import Root

_MAX_KEPT_PLACES = 1024


class RootSet:
    """Some roots, and the places that were looked up in them. It never changes: others take its place."""

    __slots__ = ("_places", "all", "innermost_first")

    def __init__(self, roots: tuple[Root, ...]) -> None:
        self.all = roots
        self.innermost_first = sorted(roots, key=lambda root: -len(root.parts))
        self._places: dict[str, SpelledPath] = {}

    def place(self, path: str) -> SpelledPath:
        """Which place a path names; kept, since every call asks at least twice."""
        found = self._places.get(path)
        if found is None:
            found = parse_path(path, self.all)
            if len(self._places) >= _MAX_KEPT_PLACES:
                self._places.clear()
            self._places[path] = found
        return found

    def holding(self, real: str) -> Root:
        """The root that a path, as results name it, is in."""
        parts = tuple(part for part in real.split("/") if part) if real.startswith("/") else None
        found = find_innermost_root(parts, self.all) if parts is not None else None
        return found[0] if found is not None else self.all[0]


class _Own(threading.local):
    roots: RootSet | None = None


class SessionRoots:
    """The roots of a session: those that it was given, those of active skills, those that people opened, those that its
    client works on, and those lent to one call."""

    def __init__(self, given: tuple[Root, ...]) -> None:
        self._given = given
        self._brought: tuple[Root, ...] = ()
        self._opened: tuple[Root, ...] = ()
        self._joined: tuple[Root, ...] = ()
        self._shared = RootSet(given)
        self._own = _Own()
        self._retired: list[Root] = []

    @property
    def now(self) -> RootSet:
        """The roots that this thread sees."""
        return self._own.roots or self._shared

    @property
    def opened(self) -> tuple[Root, ...]:
        """Those that people opened."""
        return self._opened

    def set_opened_roots(self, roots: Sequence[Root]) -> None:
        """Puts these in the place of all that people opened before."""
        self._retire(self._opened, roots)
        self._opened = tuple(roots)
        self._share()

    def set_skill_roots(self, roots: Sequence[Root]) -> None:
        """Puts these in the place of all that active skills brought before."""
        self._retire(self._brought, roots)
        self._brought = tuple(roots)
        self._share()

    @property
    def brought(self) -> tuple[Root, ...]:
        """Those that active skills brought."""
        return self._brought

    def set_client_roots(self, roots: Sequence[Root]) -> None:
        """Puts these in the place of all that the client worked on before."""
        self._retire(self._joined, roots)
        self._joined = tuple(roots)
        self._share()

    @property
    def joined(self) -> tuple[Root, ...]:
        """Those that the client works on."""
        return self._joined

    def _share(self) -> None:
        self._shared = RootSet((*self._given, *self._brought, *self._joined, *self._opened))

    def _retire(self, before: Sequence[Root], now: Sequence[Root]) -> None:
        # A call may be on its way through one of them, and its number must not become another file's meanwhile.
        self._retired += [root for root in before if root not in now]

    @contextmanager
    def temporarily(self, roots: Sequence[Root]) -> Generator[None]:
        """While it lasts this thread sees these as well, and no other thread does."""
        before = self._own.roots
        self._own.roots = RootSet((*self._shared.all, *roots)) if roots else before
        try:
            yield
        finally:
            self._own.roots = before

    def close(self) -> None:
        """Gives every descriptor back."""
        for root in (*self._shared.all, *self._retired):
            root.close()
