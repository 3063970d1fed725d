"""Tables, as numbered steps: a file of any age is brought up to date when it is opened."""

import sqlite3

JOURNAL = (
    """
    CREATE TABLE event (
        seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, call_id TEXT, runner TEXT NOT NULL, data BLOB NOT NULL,
        decided BLOB
    );
    CREATE TABLE given (id TEXT PRIMARY KEY, start_seq INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE call (
        id TEXT PRIMARY KEY, batch_id TEXT NOT NULL, runner TEXT NOT NULL, state TEXT NOT NULL,
        start_seq INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE runner (id TEXT PRIMARY KEY, audited INTEGER NOT NULL, audit_size INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE seen (path TEXT PRIMARY KEY, mark BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE output (call_id TEXT PRIMARY KEY, blob TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE request (
        id TEXT PRIMARY KEY, batch_id TEXT NOT NULL, call_id TEXT NOT NULL, data BLOB NOT NULL, answer BLOB
    ) WITHOUT ROWID;
    CREATE TABLE batch (id TEXT PRIMARY KEY, state TEXT NOT NULL, calls TEXT NOT NULL) WITHOUT ROWID;
    """,
    "CREATE TABLE message (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, data BLOB NOT NULL)",
    "CREATE TABLE skill (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE left_call (call_id TEXT PRIMARY KEY, digest TEXT NOT NULL, holder TEXT) WITHOUT ROWID;
    CREATE INDEX left_call_digest ON left_call (digest);
    """,
)

CHANGES = (
    """
    CREATE TABLE change_set (
        number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, call_id TEXT NOT NULL, turn TEXT NOT NULL,
        runner TEXT NOT NULL, state TEXT NOT NULL, time TEXT NOT NULL, undone_by INTEGER, data BLOB NOT NULL, diff BLOB
    );
    CREATE INDEX change_set_state ON change_set (state);
    CREATE TABLE touched (path BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (path, number)) WITHOUT ROWID;
    """,
)


def migrate(connection: sqlite3.Connection, steps: tuple[str, ...]) -> None:
    """Applies the steps the file does not have yet, all in one transaction: most files are new, and get all of them."""
    if read_schema_version(connection, steps) == len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    for step in steps[read_schema_version(connection, steps) :]:  # somebody else may have applied some a moment ago
        for statement in step.split(";"):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(steps)}")
    connection.execute("COMMIT")


def read_schema_version(connection: sqlite3.Connection, steps: tuple[str, ...]) -> int:
    """How many of the steps the file has; DatabaseError where it has more."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(steps):
        raise sqlite3.DatabaseError(f"it was written by a newer handrail (step {version})")
    return version
