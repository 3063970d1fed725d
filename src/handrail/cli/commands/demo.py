"""handrail demo: a scripted model fixes a failing test in a sample project.

The loop, tools, sandbox, undo and audit are real. At a terminal the person answers the requests.
"""

import asyncio
import json
import os
import shlex
import shutil
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr
from functools import partial
from http.client import HTTPConnection
from types import SimpleNamespace

from handrail.agent.loop import Agent, ask_in_turn
from handrail.api import Handrail
from handrail.async_api import AsyncHandrail
from handrail.cli.browser import open_browser
from handrail.cli.commands.mcp import build_missing_error
from handrail.cli.commands.run import RunApprover
from handrail.cli.commands.run_setup import enable_companion_tools
from handrail.cli.commands.run_view import RunView
from handrail.cli.commands.serve import CommandServerHost, build_limits
from handrail.cli.context import open_state_folder
from handrail.cli.exits import INTERRUPTED, OK, CommandFailed
from handrail.cli.main import run as run_command
from handrail.cli.output import print_note, print_out, warn, write_out
from handrail.cli.parser import Command, add_plain_option
from handrail.cli.usage import parse_nonempty_text
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.calls import Done, Parked
from handrail.protocol.decisions import Mode
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question
from handrail.protocol.results import OVERLAY_TIER
from handrail.settings import LoadedSettings, load
from handrail.terminal.glyphs import build_glyphs
from handrail.terminal.permission_prompt import is_person_present
from handrail.terminal.request_text import (
    PromptState,
    render_choices,
    render_request,
    render_title,
)
from handrail.terminal.screen import Screen
from handrail.terminal.turn_summary import Tally, render_ending

_CART = '''"""The cart of a small shop. Prices are in cents."""


def total(prices, discount=0):
    """The sum of the prices, less a discount in per cent; half a cent is rounded up."""
    return round(sum(prices) * (100 - discount) / 100)
'''
_TESTS = """import unittest

from cart import total


class TotalTest(unittest.TestCase):
    def test_prices_are_added_up(self):
        self.assertEqual(total([199, 250]), 449)

    def test_a_discount_is_taken_off(self):
        self.assertEqual(total([200, 200], discount=25), 300)

    def test_half_a_cent_is_rounded_up(self):
        self.assertEqual(total([25], discount=50), 13)


if __name__ == "__main__":
    unittest.main()
"""
_PRICES = """#!/bin/sh
# Makes a new price list.
rm -f prices.old
printf 'tea 199\\ncake 250\\n' >prices.txt
echo '2 prices written'
"""
_FILES = {
    "README.md": "# shop\n\nTests: python3 -B -m unittest -q\nPrice list: ./prices.sh\n",
    "cart.py": _CART,
    "test_cart.py": _TESTS,
    "prices.sh": _PRICES,
    "prices.old": "tea 189\ncake 240\n",
    ".env": "SHOP_TOKEN=this-is-not-for-the-model\n",
}
_BROKEN = "    return round(sum(prices) * (100 - discount) / 100)\n"
_FIXED = "    return (sum(prices) * (100 - discount) + 50) // 100\n"
_TASK = "Fix the tests, and make a new price list."
_RUN_TESTS = "python3 -B -m unittest -q"
_SCRIPT = (
    ScriptedReply(text="I look around first.", calls=(("ls", {"path": "."}), ("read", {"path": "cart.py"}))),
    ScriptedReply(text="Now the tests.", calls=(("exec", {"command": _RUN_TESTS}),)),
    ScriptedReply(
        text="Half a cent is rounded to the even number. Perhaps a setting says so?",
        calls=(("read", {"path": ".env"}),),
    ),
    ScriptedReply(
        text="I may not read credentials, and do not need them. The bug is in cart.py.",
        calls=(("edit", {"path": "cart.py", "oldText": _BROKEN, "newText": _FIXED}),),
    ),
    ScriptedReply(
        text="The tests once more, and the price list. This command changes files.",
        calls=(("exec", {"command": f"{_RUN_TESTS} && ./prices.sh"}),),
    ),
    ScriptedReply(
        text="round() rounds half to even; cart.py now rounds half up. All tests pass, and prices.txt is new."
    ),
)
_CHANGES = 2
"""Change sets of the script, if all is kept."""
_VARIABLES = ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG", "HANDRAIL_MODE", "PATH")
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_INTRODUCTION = "handrail demo: only the model is scripted.\nThe demo needs no key and does not touch your files."
_YOU_ANSWER = "You answer its requests: y approves, n rejects."
_YOU_ANSWER_THERE = "Answer its requests in the browser. Ctrl+C ends the demo."
_NEXT_COMMANDS = (
    "handrail demo --keep shop",
    'handrail run "fix the failing test" --model anthropic:NAME',
    "handrail mcp --config claude-code",
)
_NEXT_IN_SAMPLE = (
    "handrail log --changes",
    "handrail undo --turn",
    "handrail exec -- ./prices.sh",
)


def play(options: SimpleNamespace, flags: Mapping[str, object] | None = None) -> int:
    """Plays the demo with settings of its own, and with `flags`."""
    keep = os.path.abspath(options.keep) if options.keep else None
    if options.web:
        return _play_in_browser(keep)
    with redirect_stderr(sys.stdout), _open_sample_folder(keep):
        print_note(f"{_INTRODUCTION}\n{_YOU_ANSWER}" if is_person_present() else _INTRODUCTION)
        print_note(f'\n$ handrail run "{_TASK}"')
        variables, toolchains = _find_python()
        loaded = enable_companion_tools(load(os.environ, {"sandbox.toolchains": toolchains or None, **(flags or {})}))
        undoable = asyncio.run(_play_turn(options, loaded, variables))
        if len(undoable) < _CHANGES:
            print_note("The model is scripted, so your answers do not change its words.")
        _show_record(loaded, variables, undoable)
        _print_end(keep)
    return OK


def _print_end(keep: str | None) -> None:
    where = f"The project is in {keep}" if keep else "Its folder was removed"
    commands = (f"cd {shlex.quote(keep)}", *_NEXT_IN_SAMPLE) if keep else _NEXT_COMMANDS
    print_note("\n  ".join((f"\nThat was the demo. {where}. Try:", *commands)))


async def _play_turn(options: SimpleNamespace, loaded: LoadedSettings, variables: dict[str, str]) -> list[int]:
    """Runs the scripted model. Returns the numbers of its change sets."""
    glyphs, model = build_glyphs(options), ScriptedModel(_SCRIPT, name="demo")
    async with AsyncHandrail(".", session="demo", mode="ask", settings=loaded, variables=variables) as rail:
        view, tally = RunView(options, glyphs, model.name), Tally()
        present = is_person_present()
        approver = RunApprover(rail, view, plain=options.plain) if present else AutoApprover(view, plain=options.plain)
        for listener in (tally.add, view.show):
            rail.subscribe(listener)
        begun = time.monotonic()
        turn = await Agent(rail, model, person=partial(ask_in_turn, rail, approver=approver)).run(_TASK)
        view.end()
        for line in render_ending(turn.reason, tally, time.monotonic() - begun, (), glyphs, here=""):
            print_note(line)
        if rail.sandbox_tier < OVERLAY_TIER:
            print_note("Commands have no overlay on this machine, so there were no previews: handrail doctor.")
    return tally.numbers


def _show_record(loaded: LoadedSettings, variables: dict[str, str], undoable: list[int]) -> None:
    """Runs the commands that a person types after a turn. `undoable` are the numbers of its change sets."""
    if not undoable:
        print_note("\nYou kept no change, so there is nothing to undo.\nhandrail logged every call. You would type:")
        _type_command("log")
        _type_command("audit", "verify")
        return
    print_note("\nhandrail logged every call and can undo every change.\nYou would type:")
    _type_command("log", "--changes")
    _type_command("diff", str(undoable[0]))
    _type_command("undo", "--turn")
    with Handrail(
        ".", session="cli", mode="ask", settings=loaded, variables=variables, on_permission=lambda _: "once"
    ) as rail:
        code = getattr(rail.exec(_RUN_TESTS).data, "exit_code", None)
        print_note(f"The files have their old content; the tests fail again (exit {code}).")
    _type_command("redo")
    _type_command("audit", "verify")


def _type_command(*words: str) -> None:
    write_out(f"\n$ {' '.join(('handrail', *words))}\n")
    run_command([*words, "-q"])


class AutoApprover:
    """Shows each request as a person sees it, and approves it once."""

    def __init__(self, view: RunView, *, plain: bool) -> None:
        self._view, self._plain = view, plain

    async def ask(self, subject: PermissionRequest | Question, _number: int, _total: int) -> ApproverReply:
        if isinstance(subject, Question):
            return ApproverReply(subject)
        self._view.end()
        screen = Screen(sys.stderr, os.environ, plain=self._plain)
        lines = render_request(subject, width=screen.width, plain=screen.plain, paint=screen.paint)
        keys = render_choices(subject, width=screen.width, plain=screen.plain, possible=PromptState(retry=True))
        screen.write(screen.framed_lines(render_title(subject), [*lines, "", *keys]))
        screen.write(["y   (the script presses this key for you)"])
        return ApproverReply(subject, Answer(kind="once"))

    def report(self, _reply: ApproverReply, _outcome: Done | Parked | None) -> None:
        """The view shows the result."""


# In the browser


def _play_in_browser(keep: str | None) -> int:
    """Serves the console with the task of the demo until a signal."""
    try:
        from handrail.mcp.http.guard import Address  # noqa: PLC0415  an optional dependency
        from handrail.server.access import ServerNames  # noqa: PLC0415  as above
        from handrail.server.application import Entrance, serve  # noqa: PLC0415  as above
        from handrail.server.options import ServerOptions  # noqa: PLC0415  as above
    except ImportError as error:
        raise build_missing_error("the HTTP server", "server", error) from None
    with _open_sample_folder(keep), ExitStack() as held:
        variables, toolchains = _find_python()
        os.environ["PATH"] = f"{variables['PATH']}:{os.environ.get('PATH', '')}"
        host = DemoHost(toolchains)
        listening, token = Address("127.0.0.1", 0).listen(), open_state_folder().open_tokens().make()
        address = Address(*listening.getsockname()[:2])
        entrance = Entrance(listening, ServerNames.build(address), token, build_limits(host.load_settings(".")))
        served = ServerOptions(
            state=open_state_folder(),
            workspaces=(os.path.realpath("."),),
            host=host,
            note=warn,
            direct_calls=True,
        )
        print_note(f"{_INTRODUCTION}\n{_YOU_ANSWER_THERE}")
        threading.Thread(target=_start_task, args=(address.name, token, held), daemon=True).start()
        serve(entrance, served, INTERRUPTED)
    _print_end(keep)
    return OK


def _start_task(host: str, token: str, held: ExitStack) -> None:
    """Gives the server its task, then shows it."""
    connection = HTTPConnection(host)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/api/tasks", json.dumps({"prompt": _TASK}), headers)
    task = json.load(connection.getresponse())["id"]
    url = f"http://{host}/tasks/{task}#token={token}"
    print_out(f"{url}\n")
    held.enter_context(open_browser(url))


class DemoHost(CommandServerHost):
    """The script is the only model."""

    def __init__(self, toolchains: tuple[str, ...]) -> None:
        super().__init__(SimpleNamespace(model=["scripted:demo"], dialect=None, quiet=True))
        self._toolchains = toolchains

    def load_settings(self, workspace: str, mode: Mode | None = None) -> LoadedSettings:  # noqa: ARG002
        flags = {"mode": mode or "ask", "sandbox.toolchains": self._toolchains or None}
        return enable_companion_tools(load(os.environ, flags))

    def open_model(self, loaded: LoadedSettings, name: str | None = None) -> ScriptedModel:  # noqa: ARG002
        return ScriptedModel(_SCRIPT, name="demo")


@contextmanager
def _open_sample_folder(keep: str | None) -> Generator[None]:
    """Makes the sample workspace the current folder, with a state folder of its own. Removes both at the end. With
    `keep` the workspace is that folder and stays, and so does its record in the person's own state folder."""
    before = os.getcwd()
    variables = {name: os.environ.get(name) for name in _VARIABLES}
    with tempfile.TemporaryDirectory(prefix="handrail-demo-", ignore_cleanup_errors=True) as temporary:
        folder = os.path.realpath(temporary)
        workspace, config = keep or os.path.join(folder, "shop"), os.path.join(folder, "config.toml")
        _make_empty_folder(workspace)
        for name, text in {**_FILES, config: ""}.items():
            with open(os.path.join(workspace, name), "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(os.path.join(workspace, "prices.sh"), 0o700)
        os.environ |= {"HANDRAIL_CONFIG": config} | ({} if keep else {"HANDRAIL_STATE_DIR": f"{folder}/state"})
        os.environ.pop("HANDRAIL_MODE", None)
        os.chdir(workspace)
        try:
            yield
        finally:
            os.chdir(before)
            for name, value in variables.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _make_empty_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
        if not os.listdir(path):
            return
    except OSError as error:
        raise CommandFailed(f"the folder {path} cannot be made: {error.strerror}. Name another with --keep.") from None
    raise CommandFailed(f"the folder {path} is not empty. Nothing was written. Name a new folder with --keep.")


def _find_python() -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables and folders with which commands find a python3."""
    if shutil.which("python3", path=_SYSTEM_PATH):
        return {"PATH": _SYSTEM_PATH}, ()
    home = os.path.realpath(sys.base_prefix)
    return {"PATH": f"{home}/bin:{_SYSTEM_PATH}"}, (home,)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--keep", metavar="DIR", type=parse_nonempty_text, help="leave the sample project in this new folder"
    )
    parser.add_argument("--web", action="store_true", help="open the demo in the web console")
    add_plain_option(parser)


COMMANDS = {
    "demo": Command(
        play,
        _add_arguments,
        ("handrail demo --keep shop", "handrail demo --web"),
    ),
}
