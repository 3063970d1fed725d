"""What a client may tell its model about this server as a whole."""

INSTRUCTIONS = """\
Tools to read, search and change the files of one workspace and to run commands in it, each call under the person's \
policy. Paths are relative to the workspace. Changes can be taken back by the person (`handrail undo`).
A call that failed says what went wrong and what to do next. One that needs permission (PERMISSION_REQUIRED) waits for \
the person to say yes: nothing has run yet. Tell them what you wait for (they answer with `handrail approvals`), then \
make the very same call again: it gives what came of it, once. Do not look for another way to do what was refused."""
