"""The tables of PostgreSQL, derived from the migrations of SQLite: one numbering serves both.

Every session has its rows in the same tables, told apart by the column `scope`. A connection belongs to one scope and
sees views that have only its rows, under the names that the tables have in SQLite. So the statements are the same.
Every write first checks that its worker still runs the session.
"""

import re
from functools import cache
from typing import NamedTuple

import psycopg

from handrail.protocol.errors import StoreError
from handrail.store.database import CHANGES, JOURNAL, Schema

SCOPE, SESSION, EPOCH = "handrail.scope", "handrail.session", "handrail.epoch"
"""Settings of a connection: whose rows it sees, the session that it writes for, and the epoch of its worker."""
STALE = "HR001"
"""The state of the error of a write by a worker that lost its session."""
VIEWS, JOBS = "handrail_session", "handrail_jobs"
"""The schemas of the views, and of the tables of procrastinate."""
_TABLES = "handrail"
_LOCK = 4_727_011
_TYPES = {"INTEGER": "bigint", "TEXT": 'text COLLATE "C"', "BLOB": "bytea"}
_STATEMENT = re.compile(r"\s*CREATE (TABLE|INDEX) (\w+)(?: ON (\w+))? \((.*)\)(?: WITHOUT ROWID)?\s*", re.DOTALL)
_COMMA = re.compile(r",\s*(?![^()]*\))")

AUDIT = Schema(
    "audit",
    "other sessions",
    ("CREATE TABLE audit_line (seq INTEGER PRIMARY KEY, call_id TEXT NOT NULL, line BLOB NOT NULL)",),
)
FLEET = Schema(
    "fleet",
    "other databases",
    (
        """
        CREATE TABLE handrail.session (
            id text COLLATE "C" PRIMARY KEY, tenant text COLLATE "C" NOT NULL DEFAULT '', state text NOT NULL,
            epoch bigint NOT NULL DEFAULT 0, runners text NOT NULL DEFAULT '', worker text, lock text NOT NULL,
            options bytea NOT NULL, outcome bytea, tries integer NOT NULL DEFAULT 0, last_seq bigint NOT NULL DEFAULT 0,
            tokens bigint NOT NULL DEFAULT 0, seconds double precision NOT NULL DEFAULT 0,
            cancelled boolean NOT NULL DEFAULT false, base text,
            created timestamptz NOT NULL DEFAULT now(), changed timestamptz NOT NULL DEFAULT now()
        );
        CREATE INDEX session_tenant ON handrail.session (tenant, state);
        CREATE INDEX session_state ON handrail.session (state);
        CREATE TABLE handrail.tenant (
            name text COLLATE "C" PRIMARY KEY, sessions integer, tokens bigint, seconds double precision
        );
        CREATE TABLE handrail.reply (
            session text COLLATE "C", call_id text COLLATE "C", data bytea NOT NULL, PRIMARY KEY (session, call_id)
        );
        CREATE INDEX request_open ON handrail.request (id) WHERE answer IS NULL;
        CREATE FUNCTION handrail.notify_events() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_notify('handrail_events', scope) FROM (SELECT DISTINCT scope FROM added) AS sessions;
            RETURN NULL;
        END $$;
        CREATE TRIGGER notify AFTER INSERT ON handrail.event REFERENCING NEW TABLE AS added
            EXECUTE FUNCTION handrail.notify_events();
        CREATE TABLE handrail.blob (
            hash text COLLATE "C", part integer, data bytea NOT NULL, made timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (hash, part)
        );
        CREATE TABLE handrail.folder (
            session text COLLATE "C", name text COLLATE "C", files bytea NOT NULL, PRIMARY KEY (session, name)
        );
        """,
        # PL/pgSQL keeps the plan of a query for the whole connection, SQL for one call.
        """
        CREATE INDEX session_changed ON handrail.session (changed);
        CREATE FUNCTION handrail.notify_state() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_notify('handrail_events', NEW.id);
            RETURN NULL;
        END $$;
        CREATE TRIGGER notify AFTER UPDATE OF state ON handrail.session FOR EACH ROW
            EXECUTE FUNCTION handrail.notify_state();
        CREATE OR REPLACE FUNCTION handrail.count_message() RETURNS bigint LANGUAGE plpgsql
            AS 'BEGIN RETURN (SELECT coalesce(max(number), 0) + 1 FROM handrail_session.message); END';
        CREATE OR REPLACE FUNCTION handrail.count_change_set() RETURNS bigint LANGUAGE plpgsql
            AS 'BEGIN RETURN (SELECT coalesce(max(number), 0) + 1 FROM handrail_session.change_set); END';
        """,
    ),
)
"""Tables that only a fleet has. A blob belongs to all sessions, a folder to one of them."""
SCHEMAS = (JOURNAL, CHANGES, AUDIT, FLEET)

_SAVE_STEP = "INSERT INTO handrail.migration VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET step = excluded.step"
_READ_STEP = "SELECT step FROM handrail.migration WHERE name = %s"
_PREPARE = f"""
CREATE SCHEMA IF NOT EXISTS {_TABLES};
CREATE SCHEMA IF NOT EXISTS {VIEWS};
CREATE TABLE IF NOT EXISTS {_TABLES}.migration (name text PRIMARY KEY, step integer NOT NULL);
CREATE OR REPLACE FUNCTION {VIEWS}.instr(data bytea, part bytea) RETURNS integer LANGUAGE sql IMMUTABLE
    AS 'SELECT position(part IN data)';
CREATE OR REPLACE FUNCTION {_TABLES}.check_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('{EPOCH}', true) <> '' THEN
        PERFORM 1 FROM {_TABLES}.session
            WHERE id = current_setting('{SESSION}') AND epoch = current_setting('{EPOCH}')::bigint FOR SHARE;
        IF NOT FOUND THEN
            RAISE 'another worker has taken over this session' USING ERRCODE = '{STALE}';
        END IF;
    END IF;
    RETURN NULL;
END $$;
"""


class Table(NamedTuple):
    """A table of a session."""

    name: str
    columns: dict[str, str]
    """Each with its type and constraints, as SQLite has them."""
    key: tuple[str, ...]
    counter: str | None
    """The column that numbers the rows."""


def migrate(url: str) -> None:
    """Applies all steps that the database lacks, in one transaction. StoreError if it cannot be used."""
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            connection.execute(_PREPARE)
            for schema in SCHEMAS:
                version = read_step(connection, schema)
                for step in schema.steps[version:]:
                    connection.execute((step if schema is FLEET else derive_step(step)).encode())
                connection.execute(_SAVE_STEP, (schema.name, len(schema.steps)))
    except psycopg.Error as error:
        raise build_open_error(error) from error


def check_schema(connection: "psycopg.Connection", schema: Schema) -> None:
    """StoreError if the database lacks steps of a schema, or has some that this version does not know."""
    try:
        version = read_step(connection, schema)
    except psycopg.errors.UndefinedTable:
        version = 0
    if version < len(schema.steps):
        problem = (
            f"the database has step {version} of the {schema.name}, and this handrail needs step {len(schema.steps)}"
        )
        raise StoreError(problem, advice="Migrate the database.", then="handrail fleet migrate --database URL")


def read_step(connection: "psycopg.Connection", schema: Schema) -> int:
    """The number of steps that the database has. StoreError if it has more than we know."""
    row = connection.execute(_READ_STEP, (schema.name,)).fetchone()
    version: int = row[0] if row else 0
    if version > len(schema.steps):
        raise StoreError(f"the {schema.name} of the database was written by a newer handrail (step {version})")
    return version


def build_open_error(error: psycopg.Error) -> StoreError:
    reason = str(error).partition("\n")[0].rstrip("?.")
    advice = "Check the URL, and whether the database runs."
    return StoreError(f"the database cannot be opened: {reason}", "handrail's database cannot be used", advice)


# Statements


def derive_step(step: str) -> str:
    """The step of a migration for PostgreSQL."""
    return "".join(_derive_statement(statement) for statement in step.split(";") if statement.strip())


def _derive_statement(statement: str) -> str:
    kind, name, target, body = _match(statement)
    if kind == "INDEX":
        return f'CREATE INDEX "{name}" ON {_TABLES}.{target} (scope, {body});\n'
    table = parse_table(statement)
    columns = [f"{column} {_derive_type(rest)}" for column, rest in table.columns.items()]
    scope = f"""scope text COLLATE "C" NOT NULL DEFAULT current_setting('{SCOPE}')"""
    key = f'CONSTRAINT "{name}.{table.key[0]}" PRIMARY KEY (scope, {", ".join(table.key)})'
    base, view = f"{_TABLES}.{name}", f"{VIEWS}.{name}"
    sql = f"""CREATE TABLE {base} ({", ".join((*columns, scope, key))});
CREATE VIEW {view} AS
    SELECT {", ".join((*table.columns, "scope"))} FROM {base} WHERE scope = current_setting('{SCOPE}');
CREATE TRIGGER epoch BEFORE INSERT OR UPDATE OR DELETE ON {base} EXECUTE FUNCTION {_TABLES}.check_epoch();
"""
    if table.counter is None:
        return sql
    return f"""{sql}CREATE FUNCTION {_TABLES}.count_{name}() RETURNS bigint LANGUAGE sql
    AS 'SELECT coalesce(max({table.counter}), 0) + 1 FROM {view}';
ALTER TABLE {base} ALTER COLUMN {table.counter} SET DEFAULT {_TABLES}.count_{name}();
"""


def parse_table(statement: str) -> Table:
    _, name, _, body = _match(statement)
    columns: dict[str, str] = {}
    key: tuple[str, ...] = ()
    counter = None
    for part in _COMMA.split(body.strip()):
        column, _, rest = part.strip().partition(" ")
        if column == "PRIMARY":
            key = tuple(part.partition("(")[2].rstrip(") ").split(", "))
            continue
        if "PRIMARY KEY" in rest:
            key, counter = (column,), column if rest.startswith("INTEGER") else None
        columns[column] = rest
    return Table(name, columns, key, counter)


@cache
def list_tables() -> dict[str, Table]:
    steps = [step for schema in (JOURNAL, CHANGES, AUDIT) for step in schema.steps]
    statements = (statement for step in steps for statement in step.split(";") if "CREATE TABLE" in statement)
    return {table.name: table for table in map(parse_table, statements)}


@cache
def translate(statement: str) -> str:
    """A statement of the store for PostgreSQL."""
    if statement == "BEGIN IMMEDIATE":
        return "BEGIN"
    if "handrail." in statement:  # a statement of the fleet
        return statement.replace("?", "%s")
    text = statement.replace("IN ()", "IN (NULL)").replace(" IS ?", " IS NOT DISTINCT FROM ?").replace("?", "%s")
    text = re.sub(r"ON CONFLICT \((\w+)\)", r"ON CONFLICT (scope, \1)", text)
    if (insert := re.match(r"INSERT OR (REPLACE|IGNORE) INTO (\w+)", text)) is None:
        return text
    table = list_tables()[insert[2]]
    text = f"INSERT INTO {table.name}{text[insert.end() :]} ON CONFLICT"
    if insert[1] == "IGNORE":
        return f"{text} DO NOTHING"
    changes = ", ".join(f"{column} = excluded.{column}" for column in table.columns if column not in table.key)
    return f"{text} (scope, {', '.join(table.key)}) DO UPDATE SET {changes}"


def _match(statement: str) -> tuple[str, str, str, str]:
    found = _STATEMENT.fullmatch(statement)
    if found is None:
        raise AssertionError(f"this step of a migration cannot be derived: {statement.strip()[:80]}")
    return found[1], found[2], found[3], found[4]


def _derive_type(rest: str) -> str:
    kind, _, constraints = rest.partition(" ")
    constraints = constraints.replace("PRIMARY KEY", "").replace("AUTOINCREMENT", "").strip()
    return f"{_TYPES[kind]} {constraints}".strip()
