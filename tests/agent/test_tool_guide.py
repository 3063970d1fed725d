"""The layer rule, and the guide that is made from the specs."""

import subprocess
import sys
from pathlib import Path

from tool_sets import every_tool

from handrail.agent.prompt import render_guide
from handrail.protocol.schema import describe
from handrail.protocol.tool_spec import BASE_NAMES

ROOT = Path(__file__).resolve().parent.parent.parent
EVERY = every_tool()


def test_every_tool_says_what_it_is_for_and_no_two_say_the_same() -> None:
    intents = [spec.intent.casefold() for spec in EVERY]
    assert [spec.name for spec in EVERY if not spec.intent] == []
    assert len(set(intents)) == len(intents)


def test_the_base_layer_is_the_eight() -> None:
    assert {spec.name for spec in EVERY if spec.layer == "base"} == set(BASE_NAMES)


def test_no_two_tools_want_the_same_for_the_same() -> None:
    """A tool of a higher layer that does what one below does would ask for the same, with the same permissions."""
    wanted = [(frozenset(describe(spec).input_schema.get("required", ())), spec.permissions) for spec in EVERY]
    alike = {one for one in wanted if wanted.count(one) > 1}
    looking = {(frozenset({"pattern"}), ("fs.read",)), (frozenset({"path"}), ("fs.read",))}
    # find and grep, read and ls: all of the base layer. The others ask a language server, for a position or symbols.
    language = {(frozenset({"path", "line", "character"}), ("fs.read",)), (frozenset[str](), ("fs.read",))}
    assert alike <= looking | language


def test_what_a_tool_is_not_for_another_one_is() -> None:
    names = {spec.name for spec in EVERY}
    for spec in EVERY:
        assert {name for _, name in spec.not_for} <= names - {spec.name}


def test_the_guide_has_every_tool_once_and_its_layers_in_order() -> None:
    text = render_guide(EVERY)
    for spec in EVERY:
        assert text.count(f"| `{spec.name}(") == 1
    assert text.index("Base tools") < text.index("Extra tools")
    assert "(off by default)" in next(line for line in text.splitlines() if "`delete(" in line)


def test_the_guide_of_a_session_names_only_what_it_offers() -> None:
    text = render_guide([spec for spec in EVERY if spec.name in {"find", "exec"}])
    assert "grep" not in text
    assert "reading files" not in text


def test_what_is_written_down_of_prompts_and_guide_is_what_the_specs_give() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "prompts", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
