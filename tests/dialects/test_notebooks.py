"""Notebooks of Claude Code, and what happens if a dialect fails."""

import json
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from msgspec.structs import replace
from spoken import build_workspace, open_rail

from handrail import Handrail
from handrail.dialects.dialect import load_dialect
from handrail.dialects.surface import SessionSurface
from handrail.protocol.calls import Done

_BAD_NOTEBOOKS = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "numeric id": '{"cells": [{"id": 5, "cell_type": "code", "source": "x"}]}',
    "no cell type": '{"cells": [{"id": "a", "source": "x"}]}',
    "no list": '{"cells": ""}',
    "old format": '{"cells": [], "nbformat": "4"}',
    "endless number": '{"cells": [{"id": "a", "cell_type": "code", "source": "x"}], "n": 1e999}',
    "no number": '{"cells": [{"id": "a", "cell_type": "code", "source": "x"}], "n": NaN}',
    "lone surrogate": '{"cells": [{"id": "a", "cell_type": "code", "source": "x"}], "n": "\\ud800"}',
    "deep outputs": '{"cells": [{"id": "a", "cell_type": "code", "source": "x", "outputs": ['
    + "[" * 500
    + "]" * 500
    + "]}]}",
}


@pytest.mark.parametrize("name", _BAD_NOTEBOOKS)
def test_a_file_that_is_no_good_notebook_gets_an_answer_and_stays(tmp_path: Path, name: str) -> None:
    notebook = build_workspace(tmp_path) / "bad.ipynb"
    notebook.write_text(_BAD_NOTEBOOKS[name])
    mode = {"edit_mode": "insert", "cell_type": "code"} if name in {"no list", "old format"} else {}
    cell = {"cell_id": "none" if name == "numeric id" else "a"} if not mode and name != "deep" else {}
    with open_rail(tmp_path, "claude-code") as rail:
        shown = rail.call("Read", {"file_path": "bad.ipynb"})
        assert shown.ok
        assert msgspec.json.decode(msgspec.json.encode(shown.data))["tool_use_result"]
        edited = rail.call("NotebookEdit", {"notebook_path": "bad.ipynb", "new_source": "y"} | mode | cell)
    if name == "deep outputs":
        assert edited.ok
        return
    assert edited.error is not None
    assert edited.error.code == "INVALID_ARGUMENT"
    assert edited.content.startswith("bad.ipynb ")
    assert edited.content.endswith(" Nothing was changed.")
    assert notebook.read_text() == _BAD_NOTEBOOKS[name]


def test_a_notebook_with_a_lone_surrogate_is_read_as_valid_unicode(tmp_path: Path) -> None:
    cell = '{"id": "a", "cell_type": "code", "source": "\\ud800", "outputs": ["\\udfff"]}'
    (build_workspace(tmp_path) / "odd.ipynb").write_text(f'{{"cells": [{cell}]}}')
    with open_rail(tmp_path, "claude-code") as rail:
        shown = rail.call("Read", {"file_path": "odd.ipynb"})
    assert shown.content == '<cell id="a">\\ud800</cell id="a">'
    assert "dfff" in msgspec.json.encode(shown).decode()


def test_ids_of_cells_are_escaped_and_truncated_in_messages(tmp_path: Path) -> None:
    cells = [{"id": one, "cell_type": "code", "source": "x"} for one in ("\x1b[2J\u202eid", "A" * 1_000)]
    (build_workspace(tmp_path) / "odd.ipynb").write_text(json.dumps({"cells": cells}))
    with open_rail(tmp_path, "claude-code") as rail:
        refused = rail.call("NotebookEdit", {"notebook_path": "odd.ipynb", "new_source": "y", "cell_id": "\x1b"})
    assert refused.content == f"There is no cell \\u001b; there are \\u001b[2J\\u202eid, {'A' * 79}…."


@pytest.mark.parametrize("broken", ["call", "show", "render"])
def test_a_defect_of_a_dialect_becomes_the_result_of_its_call(tmp_path: Path, broken: str) -> None:
    def fail(*_: object) -> NoReturn:
        raise KeyError("gone")

    whole = load_dialect("claude-code")
    tool = next(one for one in whole.tools if one.name == "Read")
    code = tool.code if broken == "render" else tool.code._replace(**{broken: fail})
    dialect = replace(whole, tools=(replace(tool, code=code),), render=fail if broken == "render" else whole.render)
    workspace = build_workspace(tmp_path)
    with Handrail(workspace, mode="auto", state_dir=tmp_path / "state") as rail:
        surface = SessionSurface(dialect, rail._session, rail._run_batch)  # pyright: ignore[reportPrivateUsage]
        call = surface.build_call("Read", {"file_path": "a.py"})
        done = surface.run((call,), fresh=True)
    assert isinstance(done, Done)
    (result,) = done.results
    assert (result.tool_call_id, result.name, result.ok) == (call.tool_call_id, "Read", False)
    assert result.error is not None
    assert result.error.code == "INTERNAL"
    assert "KeyError" in result.content
    assert result.content.startswith("An internal error stopped" if broken == "call" else "The call ran, but")
