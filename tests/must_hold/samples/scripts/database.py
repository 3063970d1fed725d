"""A database in the workspace whose readers and writers share memory."""

import sqlite3

with sqlite3.connect("sample.db") as database:
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE rows (number)")
    database.executemany("INSERT INTO rows VALUES (?)", [(number,) for number in range(100)])
    database.commit()
    print("rows", sqlite3.connect("sample.db").execute("SELECT count(*) FROM rows").fetchone()[0])
