"""Every table has one owner: the module with all statements that name it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import handrail
from handrail.store.code_index import CODE_INDEX
from handrail.store.database import CHANGES, CONTENTS, JOURNAL
from handrail.store.postgres_schema import AUDIT

SOURCES = Path(handrail.__file__).parent
OWNERS = {
    "audit_line": "store/shared_store.py",
    "batch": "store/approvals.py",
    "call": "store/journal.py",
    **dict.fromkeys(("chunk", "chunk_name", "chunk_text", "chunk_vector", "source_file"), "store/code_index.py"),
    "change_set": "store/change_log.py",
    "content": "store/blobs.py",
    "event": "store/journal.py",
    "given": "store/journal.py",
    "left_call": "store/approvals.py",
    "message": "store/transcript.py",
    "output": "store/conversation_state.py",
    "pack": "store/blobs.py",
    "prompt": "store/transcript.py",
    "request": "store/inbox.py",
    "runner": "store/audit.py",
    "seen": "store/journal.py",
    "skill": "store/conversation_state.py",
    "touched": "store/change_log.py",
}
UNKNOWN = "?"
"""Stands for the inserted values of an f-string."""
NAMED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|INDEX \w+ ON)\s+(?!pragma_|sqlite_)([a-z_]+|\?)")


def statements(source: str) -> Iterator[str]:
    """The texts of a module, f-strings too."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else UNKNOWN for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def tables(source: str) -> set[str]:
    return {table for text in statements(source) for table in NAMED.findall(text)}


def created() -> set[str]:
    steps = [step for schema in (JOURNAL, CHANGES, CONTENTS, CODE_INDEX, AUDIT) for step in schema.steps]
    return {table for step in steps for table in re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", step)}


def test_every_table_has_an_owner() -> None:
    assert created() == set(OWNERS)


def test_only_the_owner_of_a_table_names_it_in_statements() -> None:
    found = {
        (path.relative_to(SOURCES).as_posix(), table)
        for path in SOURCES.rglob("*.py")
        for table in tables(path.read_text(encoding="utf-8"))
    }
    schemas = {"store/database.py", "store/postgres_schema.py"}
    found = {(path, table) for path, table in found if path not in schemas}
    # A fleet looks at all sessions, in the tables below the views, and has tables of its own.
    found = {(path, table) for path, table in found if table != "handrail" and not path.startswith("fleet/")}
    assert found == {(owner, table) for table, owner in OWNERS.items()}


def test_the_scan_sees_all_kinds_of_statements() -> None:
    texts = {
        '"INSERT OR REPLACE INTO call VALUES (?)"': {"call"},
        'f"SELECT {columns} FROM event JOIN call"': {"event", "call"},
        '"UPDATE request SET id = ?"': {"request"},
        '"DELETE FROM call WHERE id IN (SELECT call_id FROM request)"': {"call", "request"},
        'f"INSERT INTO {table} VALUES (1)"': {UNKNOWN},
    }
    assert {text: tables(text) for text in texts} == texts
