"""The demo: the tools that exist today, played over a sample workspace by a fixed script. No model takes part."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from handrail import Answer, Handrail, PermissionRequest, ToolResult
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.store.folder import StateFolder
from handrail.store.verify import verify
from handrail.terminal.tried import tried_lines

TOTAL = """from decimal import Decimal


def total(prices: list[Decimal]) -> Decimal:
    return round(sum(prices), 2)
"""
ROUNDED = """from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")


def total(prices: list[Decimal]) -> Decimal:
    exact = sum(prices, Decimal(0))
    return exact.quantize(CENT, ROUND_HALF_UP)
"""
QUOTED = "exact = sum(prices, Decimal(0))\nreturn exact.quantize(CENT, ROUND_HALF_UP)\n"
"""Lines of it as a model may quote them: without their indentation."""
NAMED = QUOTED.replace("ROUND", "rounding=ROUND")
STALE, FINER = 'CENT = Decimal("0.10")\n', 'CENT = Decimal("0.001")\n'
PATCH = """*** Begin Patch
*** Update File: src/total.py
-CENT = Decimal("0.01")
+CENT = Decimal("0.05")
*** Add File: src/tax.py
+RATE = 0.2
*** End Patch
"""
GENERATE = "./tables.sh"
"""A script of the sample: it makes a file, and removes one."""
SETTINGS = Settings(tools=Tools(enable=("apply_patch",)))


def main() -> int:
    print("handrail demo: a fixed script, no model. It shows what the runtime does with a model's calls.\n")
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as folder:
        workspace, state = Path(folder, "shop"), Path(folder, "state")
        make_shop(workspace)
        with Handrail(workspace, mode="ask", state_dir=state, settings=SETTINGS, on_permission=say_yes) as rail:
            play(rail, workspace)
        chain = verify(StateFolder(str(state)))
    state_of_chain = "intact" if chain.intact else "BROKEN"
    print(f"\nThe audit has {chain.records} records, one for each call; the chain is {state_of_chain}.")
    return 0 if chain.intact and chain.records == 16 else 1


def play(rail: Handrail, workspace: Path) -> None:
    show("What is here?", rail.ls(".", depth=3))
    show("Where is it rounded?", rail.grep("round", file_pattern="*.py"))
    show("One file of it.", rail.read("src/total.py"))
    show("A change: the person sees the difference and says yes.", rail.write("src/total.py", ROUNDED))
    show("An edit without the indentation: only one place can be meant.", rail.edit("src/total.py", QUOTED, NAMED))
    show("An edit that guesses a number: what is there instead.", rail.edit("src/total.py", STALE, FINER))
    show("A patch: all of its files, or none.", rail.apply_patch(PATCH))
    show("The person takes it back, in one step.", rail.undo())
    show("A script is tried in a throw-away copy first; yes keeps exactly what was shown.", rail.exec(GENERATE))
    show("What it did is one change, and goes back like any other.", rail.undo())
    show("A wrong name, and the answer that helps.", rail.read("src/totl.py"))
    show("A path that leads out.", rail.read("../../etc/passwd"))
    show("Credentials stay closed, even to read.", rail.read(".env"))
    show("A call with the arguments of another system.", rail.call("read", {"file_path": "src/total.py", "limit": 0}))
    (workspace / "src" / "total.py").write_text("# somebody else was here\n")
    show("Somebody else changed the file meanwhile: nothing is overwritten.", rail.write("src/total.py", TOTAL))
    show("Nor does undo overwrite it.", rail.undo())


def make_shop(workspace: Path) -> None:
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "total.py").write_text(TOTAL)
    (workspace / "README.md").write_text("# shop\n")
    (workspace / ".env").write_text("TOKEN=not-for-the-model\n")
    script = workspace / "tables.sh"
    script.write_text("#!/bin/sh\nrm README.md\necho 'RATE = 0.2' >src/rates.py\necho '1 table made'\n")
    script.chmod(0o755)


def say_yes(request: PermissionRequest) -> Answer:
    print(f"  ! {request.description} asks: {request.reason} (rule {request.rule})")
    if request.command is not None:
        print(indented("\n".join(tried_lines(request, None))))
    print(indented(request.preview.text if request.preview else ""))
    print("    y  (the script answers yes, once)")
    return Answer(kind="once")


def show(heading: str, result: ToolResult[Any]) -> None:
    mark = "✓" if result.ok else "✗"
    print(f"{heading}\n  {mark} {result.name}  {result.summary}  {result.duration_ms:.1f} ms")
    for warning in result.warnings:
        print(f"  ⚠ {warning}")
    if result.content != result.summary and result.name != "write":
        print(indented(result.content))
    print()


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines()).rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
