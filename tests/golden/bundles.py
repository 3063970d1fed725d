"""A recorded session as one text file: its workspace, its state folder with databases as SQL, and what it comes to.

Nothing in it says where it was recorded: the place of the workspace in the state folder is named anew where it is
unpacked.
"""

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from handrail.store.state_dir import StateFolder

_PLACE = "@workspace"
_OF_THE_MACHINE = {"locks", "person", "nothing", "layers", "printed"}
"""Folders of the state folder that every process fills anew."""


def packed(workspace: Path, state: Path, **more: Any) -> dict[str, Any]:
    """Both folders as JSON."""
    home = StateFolder(str(state)).home(str(workspace.resolve()))
    files = {
        str(path.relative_to(state)).replace(str(Path(home).relative_to(state)), f"workspaces/{_PLACE}"): _packed(path)
        for path in sorted(state.rglob("*"))
        if path.is_file() and _lasts(path.relative_to(state))
    }
    tree = {str(path.relative_to(workspace)): _packed(path) for path in sorted(workspace.rglob("*")) if path.is_file()}
    return {**more, "workspace": tree, "state": files}


def unpack(bundle: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """The workspace and the state folder, made anew in an empty folder."""
    workspace, state = folder / "workspace", folder / "state"
    for path, content in bundle["workspace"].items():
        _unpack(content, workspace / path)
    workspace.mkdir(parents=True, exist_ok=True)
    home = StateFolder(str(state)).home(str(workspace.resolve()))
    for path, content in bundle["state"].items():
        place = state / path
        if path.startswith(f"workspaces/{_PLACE}/"):
            place = Path(home) / path.removeprefix(f"workspaces/{_PLACE}/")
        _unpack(content, place)
        place.chmod(0o600)
    for made in state.rglob("*"):
        if made.is_dir():
            made.chmod(0o700)
    return workspace, state


def write_bundle(path: Path, bundle: dict[str, Any]) -> None:
    """One value a line, so that people can read it."""
    path.write_text(json.dumps(bundle, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_bundle(path: Path) -> dict[str, Any]:
    """As it was written."""
    return json.loads(path.read_text(encoding="utf-8"))


def _lasts(path: Path) -> bool:
    return path.parts[0] not in _OF_THE_MACHINE and path.name != ".place" and path.suffix not in {".db-wal", ".db-shm"}


def _packed(path: Path) -> Any:
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as database:
            return {"sql": list(_statements(database))}
    data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _unpack(content: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_bytes(content.encode())
    elif "base64" in content:
        path.write_bytes(base64.b64decode(content["base64"]))
    else:
        with closing(sqlite3.connect(path)) as database, database:
            for statement in content["sql"]:
                database.execute(statement)


def _statements(database: sqlite3.Connection) -> Iterator[str]:
    yield f"PRAGMA user_version = {database.execute('PRAGMA user_version').fetchone()[0]}"
    made = database.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC")
    every = made.fetchall()
    yield from (" ".join(sql.split()) for name, _, sql in every if not name.startswith("sqlite_"))
    for table in (name for name, kind, _ in every if kind == "table"):
        for row in database.execute(f'SELECT * FROM "{table}" ORDER BY 1'):
            yield f'INSERT INTO "{table}" VALUES ({", ".join(map(_literal, row))})'


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return f"X'{value.hex()}'"
        return f"X'{value.hex()}'" if "\0" in text else f"CAST({_literal(text)} AS BLOB)"
    if isinstance(value, str):
        return "'{}'".format(value.replace("'", "''"))
    return "NULL" if value is None else repr(value)
