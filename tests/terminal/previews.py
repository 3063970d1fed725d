"""Requests about commands that ran in a preview."""

from typing import Any

from handrail.protocol.changes import Change, Preview, PreviewRun
from handrail.protocol.permissions import PermissionRequest
from people import a_request

DELETED = Change(path="src/api/old_types.py", action="deleted", removed=88)
CREATED = Change(path="src/api/_generated.py", action="created", added=210, mode=0o644)
CHANGED = Change(path="src/api/types.py", action="modified", added=41, removed=12)
LAYOUT = Change(path="src/api/client.py", action="modified", added=6, removed=6, layout_only=True)
FOUR = (DELETED, CREATED, LAYOUT, CHANGED)
DIFF = """--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 same
-old line
+new line
 end
--- /dev/null
+++ b/b.py
@@ -0,0 +1,1 @@
+only line
"""


def trial(**fields: Any) -> PreviewRun:
    """How a trial went: four files, one of them deleted."""
    given: dict[str, Any] = {"sealed": "t-1", "exit_code": 0, "duration_ms": 1800.0, "changes": FOUR}
    given |= {"files": 4, "deleted": 1, "lines": 14, "last_line": "31 types generated"}
    return PreviewRun(**(given | fields))


def tried_request(
    tried: PreviewRun | None = None, *, text: str = DIFF, output: str = "", **fields: Any
) -> PermissionRequest:
    """A request about a command that was tried."""
    preview = Preview(kind="run", text=text, output=output, tried=tried or trial())
    given: dict[str, Any] = {
        "command": "./gen.sh && ruff format src",
        "answers": ("once", "output", "deny"),
        "tier": 3,
        "preview": preview,
    }
    return a_request(**(given | fields))
