"""Where state and user file are, by environment."""

import os
import pwd

import pytest

from handrail.settings import SettingsError, resolve_state_folder, resolve_user_file

STATE = [
    ({"HOME": "/home/ada"}, "/home/ada/.local/state/handrail"),
    ({"HOME": "/home/ada/"}, "/home/ada/.local/state/handrail"),
    ({"HOME": "/"}, "/.local/state/handrail"),
    ({"HOME": "/home/ada", "XDG_STATE_HOME": "/var/ada"}, "/var/ada/handrail"),
    ({"HOME": "/home/ada", "XDG_STATE_HOME": ""}, "/home/ada/.local/state/handrail"),
    ({"HOME": "/home/ada", "XDG_STATE_HOME": "/var/ada", "HANDRAIL_STATE_DIR": "/srv/rail"}, "/srv/rail"),
    ({"HANDRAIL_STATE_DIR": "/srv/rail"}, "/srv/rail"),
]
USER_FILE = [
    ({"HOME": "/home/ada"}, "/home/ada/.config/handrail/config.toml"),
    ({"HOME": "/home/ada", "XDG_CONFIG_HOME": "/etc/ada"}, "/etc/ada/handrail/config.toml"),
    ({"HOME": "/home/ada", "XDG_CONFIG_HOME": "/etc/ada", "HANDRAIL_CONFIG": "/srv/my.toml"}, "/srv/my.toml"),
    ({"HOME": "/home/ada", "HANDRAIL_CONFIG": ""}, "/home/ada/.config/handrail/config.toml"),
]


@pytest.mark.parametrize(("environ", "expected"), STATE)
def test_the_state_folder_is_the_nearest_that_the_environment_names(environ: dict[str, str], expected: str) -> None:
    assert resolve_state_folder(environ) == expected


@pytest.mark.parametrize(("environ", "expected"), USER_FILE)
def test_the_user_file_is_the_nearest_that_the_environment_names(environ: dict[str, str], expected: str) -> None:
    assert resolve_user_file(environ) == expected


@pytest.mark.parametrize("variable", ["HANDRAIL_STATE_DIR", "XDG_STATE_HOME", "HOME"])
@pytest.mark.parametrize("value", ["state", "./state", "~/state"])
def test_a_relative_state_folder_is_refused(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve_state_folder({variable: value})
    assert caught.value.problems == (f"{variable} is '{value}'; allowed: an absolute path, starting with /",)


@pytest.mark.parametrize("variable", ["HANDRAIL_CONFIG", "XDG_CONFIG_HOME", "HOME"])
def test_a_relative_user_file_is_refused(variable: str) -> None:
    with pytest.raises(SettingsError, match=rf"{variable} is 'my\.toml'"):
        resolve_user_file({variable: "my.toml"})


def test_without_home_the_account_says_where_home_is() -> None:
    assert resolve_state_folder({}) == os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".local/state/handrail")
