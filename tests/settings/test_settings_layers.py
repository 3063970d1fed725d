"""Managed, session and project layers: which one decides, and what none of them may say."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from layer_files import load_layers

from handrail.settings import LoadedSettings, SettingsError, load
from handrail.settings.declaration import ALL_SOURCES, FILE_SOURCES, TRUSTED_SOURCES, USER_SOURCES
from handrail.settings.model import list_settings

NOBODY: Mapping[str, object] = {}


class Place(NamedTuple):
    """A home, a workspace and a managed file of one test."""

    tmp: Path

    @property
    def workspace(self) -> Path:
        return self.tmp / "shop"

    def load(self, **layers: Any) -> LoadedSettings:
        return load_layers(self.tmp, **layers)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


MODES = [
    # managed, user, trusted project, session, environment, flag → mode, first word of its source, number of notes
    (("plan", "auto", "auto", "auto", "auto", "full"), ("plan", "managed", 1)),
    (("auto", None, None, None, "", None), ("auto", "managed", 0)),
    (("full", None, None, None, "", None), ("full", "managed", 0)),
    (("auto", "plan", None, None, "", None), ("plan", "user", 0)),
    (("ask", None, None, None, "", "plan"), ("plan", "flag", 0)),
    (("ask", None, None, None, "", "ask"), ("ask", "managed", 0)),
    (("ask", None, None, None, "plan", None), ("plan", "environment", 0)),
    ((None, "plan", "auto", None, "", None), ("auto", "project", 0)),
    ((None, "auto", "full", None, "", None), ("auto", "user", 1)),
    ((None, "full", "auto", None, "", None), ("auto", "project", 0)),
    ((None, "ask", "plan", "auto", "", None), ("auto", "session", 0)),
    ((None, "ask", None, "full", "", None), ("ask", "user", 1)),
    ((None, None, "auto", None, "plan", None), ("plan", "environment", 0)),
    ((None, None, "ask", None, "auto", None), ("ask", "project", 1)),
    ((None, None, "plan", "plan", "plan", "auto"), ("auto", "flag", 0)),
]


@pytest.mark.parametrize(("layers", "expected"), MODES)
def test_the_nearest_layer_decides_the_mode_but_never_past_the_managed_one(
    place: Place, layers: tuple[Any, ...], expected: tuple[str, str, int]
) -> None:
    managed, user, project, session, environment, flag = layers
    loaded = place.load(
        managed=f'mode = "{managed}"' if managed else None,
        user=f'mode = "{user}"' if user else None,
        project=f'mode = "{project}"' if project else None,
        session={"mode": session} if session else {},
        environ={"HANDRAIL_MODE": environment},
        flags={"mode": flag},
        trusted=True,
    )
    assert (loaded.settings.mode, loaded.sources["mode"].split()[0], len(loaded.notes)) == expected


def test_a_value_that_the_managed_file_does_not_let_be_is_told(place: Place) -> None:
    loaded = place.load(managed='mode = "ask"', flags={"mode": "auto"})
    assert loaded.notes == (
        f'mode = "auto" (flag) is ignored: the managed file {place.tmp}/managed.toml says "ask",'
        " and looser values are ignored",
    )
    assert loaded.managed == {"mode": "ask"}


def test_a_list_is_as_strict_as_both_say(place: Place) -> None:
    loaded = place.load(
        managed='[tools]\nenable = ["delete", "todo"]\ndisable = ["exec"]\n',
        user='[tools]\nenable = ["delete", "memory"]\ndisable = ["write"]\n',
    )
    assert loaded.settings.tools.enable == ("delete",)
    assert loaded.settings.tools.disable == ("exec", "write")
    assert loaded.sources["tools.disable"].count(" file ") == 2


@pytest.mark.parametrize(
    "variable", ["HANDRAIL_MANAGED", "HANDRAIL_MANAGED_FILE", "HANDRAIL_CONFIG", "XDG_CONFIG_DIRS"]
)
def test_no_variable_moves_the_managed_file(place: Place, variable: str) -> None:
    other = place.tmp / "other.toml"
    other.write_text('mode = "ask"')
    loaded = place.load(managed='mode = "plan"', environ={variable: str(other)}, flags={"mode": "full"})
    assert loaded.settings.mode == "plan"


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


BROKEN = [
    (lambda path: path.mkdir(), "it is not a regular file"),
    (make_pipe, "it is not a regular file"),
    (lambda path: path.symlink_to("gone.toml"), "it "),
    (lambda path: path.write_text("mode = \n"), "line 1, column 8: not TOML: Invalid value"),
    (lambda path: path.write_text('moode = "ask"'), "line 1: moode is not a setting; did you mean mode?"),
    (lambda path: path.write_bytes(b"#" * 1024 * 1024 + b"##"), "it is larger than 1 MiB"),
    (lambda path: path.write_text("[[rule]]\nallow = 'ls'"), "line 1: the rule has no id"),
]


@pytest.mark.parametrize(("spoil", "problem"), BROKEN)
def test_a_managed_file_that_cannot_be_used_stops_everything(place: Place, spoil: Any, problem: str) -> None:
    spoil(place.tmp / "managed.toml")
    with pytest.raises(SettingsError, match=r"\AThe managed file .*managed\.toml cannot be used") as caught:
        place.load(flags={"mode": "plan"})
    assert caught.value.problems[0].startswith(problem)
    assert str(caught.value).endswith("Nothing was run. The administrator of this machine has to correct the file.")


@pytest.mark.parametrize(("spoil", "problem"), BROKEN)
@pytest.mark.parametrize("trusted", [True, False])
def test_a_project_file_that_cannot_be_used_stops_everything(
    place: Place, spoil: Any, problem: str, trusted: bool
) -> None:
    place.workspace.mkdir()
    spoil(place.workspace / "handrail.toml")
    with pytest.raises(SettingsError, match=r"\AThe project file .*handrail\.toml cannot be used") as caught:
        place.load(trusted=trusted)
    assert caught.value.problems[0].startswith(problem)


@pytest.mark.parametrize("target", ["inside.toml", "../outside.toml", "gone.toml", "/etc/passwd", "handrail.toml"])
def test_a_project_file_that_is_a_link_is_refused_wherever_it_leads(place: Place, target: str) -> None:
    place.workspace.mkdir()
    for path in (place.workspace / "inside.toml", place.tmp / "outside.toml"):
        path.write_text('mode = "plan"')
    (place.workspace / "handrail.toml").symlink_to(target)
    with pytest.raises(SettingsError, match="it is a link; project settings must be a regular file"):
        place.load()


def test_a_workspace_without_a_project_file_has_no_project(place: Place) -> None:
    assert place.load().project is None
    assert load({"HOME": "/nowhere"}, {}, str(place.tmp / "gone")).project is None


@pytest.mark.parametrize("kind", ["named", "by default", "by a link", "by a link inside", "by links", "by folders"])
def test_a_user_file_in_the_workspace_cannot_loosen(place: Place, kind: str) -> None:
    place.workspace.mkdir()
    inside = place.workspace / ".config/handrail/config.toml"
    inside.parent.mkdir(parents=True)
    text = 'mode = "auto"\n[tools]\ndisable = ["write"]\n[[rule]]\nid = "a"\nallow = "make"\n'
    inside.write_text(text)
    outside = place.tmp / "link.toml"
    outside.symlink_to(inside)
    (place.tmp / "real.toml").write_text(text)
    (place.workspace / "link.toml").symlink_to(place.tmp / "real.toml")
    (place.tmp / "first.toml").symlink_to(place.workspace / "link.toml")
    (place.workspace / "folder").symlink_to(place.tmp)
    (place.tmp / "folder").symlink_to(f"{place.workspace.name}/folder")
    environ = {
        "named": {"HANDRAIL_CONFIG": str(inside)},
        "by default": {"HOME": str(place.workspace)},
        "by a link": {"HANDRAIL_CONFIG": str(outside)},
        "by a link inside": {"HANDRAIL_CONFIG": str(place.workspace / "link.toml")},
        "by links": {"HANDRAIL_CONFIG": str(place.tmp / "first.toml")},
        "by folders": {"HANDRAIL_CONFIG": str(place.tmp / "folder/real.toml")},
    }[kind]
    loaded = place.load(environ=environ)
    assert (loaded.settings.mode, loaded.settings.tools.disable, loaded.rules) == ("ask", ("write",), ())
    assert [note.partition(" line ")[2] for note in loaded.notes] == [
        '1: mode = "auto" is ignored: the file is in the workspace, where an agent could write it',
        '4: rule a: allow "make" is ignored: the file is in the workspace, where an agent could write it',
    ]


def test_a_user_file_beside_the_workspace_is_the_persons_own(place: Place) -> None:
    (place.tmp / "shop.toml").write_text('mode = "auto"')
    loaded = place.load(environ={"HANDRAIL_CONFIG": str(place.tmp / "shop.toml")})
    assert (loaded.settings.mode, loaded.notes) == ("auto", ())


def test_a_user_file_in_a_folder_that_it_opens_for_writing_is_refused(place: Place) -> None:
    with pytest.raises(SettingsError, match=r"paths\.writable has .*/home, which contains it"):
        place.load(user='[paths]\nwritable = ["~"]\n')


def test_nor_is_there_a_folder_to_write_where_settings_would_be_looked_for(place: Place) -> None:
    for folder in ("~", str(place.tmp)):
        with pytest.raises(SettingsError, match=", which contains it"):
            place.load(flags={"paths.writable": (folder,)})


def test_the_session_speaks_as_a_file_does(place: Place) -> None:
    loaded = place.load(
        session={"tools.enable": ["todo"], "rule": [{"id": "push", "deny": "git push"}]}, user='mode = "auto"'
    )
    assert (loaded.settings.tools.enable, loaded.sources["tools.enable"]) == (("todo",), "session")
    assert [(rule.id, rule.layer, rule.source) for rule in loaded.rules] == [("push", "session", "session")]


def test_everything_that_is_wrong_with_a_session_is_told(place: Place) -> None:
    with pytest.raises(SettingsError, match=r"\AThe session's settings cannot be used") as caught:
        place.load(session={"mod": "ask", "rule": [{"deny": 3}]})
    assert caught.value.problems == (
        "mod is not a setting; did you mean mode?",
        "rule 1: deny is 3; allowed: one non-empty string; a second pattern needs a second rule",
        "rule 1: the rule has no id",
    )


RESERVED = [
    # a value, who may give it, and what the project's note says of it
    ("mode", "full", USER_SOURCES, "only the user file or a flag may set this"),
    ("paths.outside", "ask", FILE_SOURCES, "only the user file may set this"),
    ("paths.client_roots", "read-only", USER_SOURCES, "only the user file or a flag may set this"),
    ("events.jsonl", ".tasklogs", FILE_SOURCES, "only the user file may set this"),
    ("tools.folders", ["/opt/tools"], USER_SOURCES, "only the user file or a flag may set this"),
    ("skills.folders", ["/opt/skills"], USER_SOURCES, "only the user file or a flag may set this"),
    ("undo.days", 1, USER_SOURCES, "only the user file or a flag may set this"),
    ("sandbox.tier", 2, USER_SOURCES, "only the user file or a flag may set this"),
    ("sandbox.toolchains", ["/opt/sdk"], USER_SOURCES, "only the user file or a flag may set this"),
    ("sandbox.environment", ["NODE_ENV"], USER_SOURCES, "only the user file or a flag may set this"),
    ("server.requests", 200, FILE_SOURCES, "only the user file may set this"),
    ("network.allow", ["example.org:443"], FILE_SOURCES, "only the user file may set this"),
]


@pytest.mark.parametrize(("key", "value", "who", "why"), RESERVED)
@pytest.mark.parametrize("trusted", [True, False])
def test_some_values_are_nobodys_but_the_persons(
    place: Place, key: str, value: object, who: tuple[str, ...], why: str, trusted: bool
) -> None:
    written = str(value).replace("'", '"') if not isinstance(value, str) else f'"{value}"'
    loaded = place.load(project=f"{key} = {written}", trusted=trusted)
    assert loaded.notes == (f"handrail.toml line 1: {key} = {written} is ignored: {why}",)
    assert [loaded.sources[key], loaded.ignored[0].until_trusted] == ["default", False]
    for layer in ("flag", "session"):
        told = place.load(project="", **{"flags" if layer == "flag" else layer: {key: value}})
        assert (told.sources[key] == layer) is (layer in who)


def test_every_setting_says_what_is_stricter_and_who_may_loosen_it() -> None:
    assert list(list_settings()) == list(load({"HOME": "/nowhere"}, {}).settings.flatten())
    for key, setting in list_settings().items():
        assert setting.loosened_by in (
            (ALL_SOURCES,) if key == "model" else (TRUSTED_SOURCES, USER_SOURCES, FILE_SOURCES)
        )
        assert setting.can_be_loosened("environment", None) is (key == "model")
