"""Batches that were answered, and whose runner was killed before it began all of their calls: who runs the rest."""

import sqlite3

from handrail.store.database import Database

_READY = "SELECT batch_id FROM call WHERE state = 'ready' GROUP BY batch_id ORDER BY min(start_seq)"
_RELEASE = "UPDATE call SET state = 'ready' WHERE runner = ? AND state = 'claimed' AND batch_id = coalesce(?, batch_id)"
_CLAIM = "UPDATE call SET state = 'claimed', runner = ? WHERE batch_id = ? AND state = 'ready'"


def release_claims(database: Database, runner: str, batch_id: str | None = None) -> None:
    """Makes what a runner took over and did not begin ready for whoever comes next: of one batch, or of all."""
    database.run(_RELEASE, (runner, batch_id))


def list_ready_batches(database: Database) -> list[str]:
    """The batches with calls that are ready to run, the oldest first."""
    return [str(row[0]) for row in database.rows(_READY)]


def claim_ready(database: Database, runner: str, batch_id: str) -> list[str]:
    """Takes over what is ready of a batch; all its calls in their order, or none where there was nothing to take.

    Of several who try, one gets all of it.
    """
    with database.lock:
        try:
            with database.transaction:
                if not database.execute(_CLAIM, (runner, batch_id)).rowcount:
                    return []
                found = database.execute("SELECT calls FROM batch WHERE id = ?", (batch_id,)).fetchone()
        except sqlite3.Error as error:
            database.fail(error)
    calls: str = found[0]
    return calls.split()
