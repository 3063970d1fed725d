"""How commands are confined and how much they may use, as settings say it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from layer_files import find_problem, load_layers

from handrail.settings import LoadedSettings, load
from handrail.settings.units import BYTES, SECONDS, parse_seconds, parse_size, suggest_size, suggest_time


def load_with(tmp_path: Path, text: str, project: str | None = None) -> LoadedSettings:
    return load_layers(tmp_path, user=text, project=project, trusted=project is not None)


def test_limits_may_stand_on_one_line(tmp_path: Path) -> None:
    limits = load_with(tmp_path, 'limits = { exec = "120s", output = "4 MB", memory = "4 GB" }').settings.limits
    assert (parse_seconds(limits.exec), parse_size(limits.output), parse_size(limits.memory)) == (120, 4 << 20, 4 << 30)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("120s", 120), ("120 s", 120), ("2 min", 120), ("1.5 min", 90), ("500 ms", 0.5), ("250ms", 0.25), (7, 7)],
)
def test_a_time_is_a_number_with_its_unit_or_seconds(written: str | int, expected: float) -> None:
    assert parse_seconds(written) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [("4 MB", 4 << 20), ("4MB", 4 << 20), ("1.5 GB", 3 << 29), ("64 KB", 1 << 16), ("12 B", 12), (9, 9)],
)
def test_a_size_is_a_number_with_its_unit_or_bytes(written: str | int, expected: int) -> None:
    assert parse_size(written) == expected


@given(st.integers(0, 999_999_999), st.sampled_from(sorted(SECONDS)), st.sampled_from(sorted(BYTES)))
def test_every_whole_number_of_every_unit_is_understood(number: int, time: str, unit: str) -> None:
    assert parse_seconds(f"{number}{time}") == pytest.approx(number * SECONDS[time])
    assert parse_size(f"{number} {unit}") == number * BYTES[unit]


@given(st.text("0123456789.sminMKGTB -+e_٣", max_size=8))
def test_what_is_understood_is_written_with_digits_and_a_known_unit(text: str) -> None:
    for read in (parse_seconds, parse_size):
        try:
            amount = read(text)
        except ValueError:
            continue
        assert text.isascii()
        assert text[0].isdigit()
        assert text[-1] in "snhB"
        assert amount >= 0


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("120 sec", "120s"), ("2m", "2 min"), ("2 Minutes", "2 min"), ("120", "120s"), ("3S", "3s"),
        (" 120s ", "120s"), ("1 Hour", "1 h"), ("1 day", "1 d"), ("soon", None), ("", None), ("-5s", None),
        ("120S ", "120s"),
    ],
)  # fmt: skip
def test_a_time_in_another_form_is_told_in_the_right_one(written: str, meant: str | None) -> None:
    assert suggest_time(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("4mb", "4 MB"), ("4 MiB", "4 MB"), ("4g", "4 GB"), ("4M", "4 MB"), ("100", "100 B"), ("9 bytes", "9 B"),
        ("4 XB", None), ("big", None), ("4,5 GB", None),
    ],
)  # fmt: skip
def test_a_size_in_another_form_is_told_in_the_right_one(written: str, meant: str | None) -> None:
    assert suggest_size(written) == meant


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('exec = "2m"', 'limits.exec is \'2m\'; allowed: a time from "100 ms" to "10 min", such as'),
        ('exec = "11 min"', "limits.exec is '11 min'; allowed: "),
        ("exec = 601", "limits.exec is 601; allowed: "),
        ("exec = 0", "limits.exec is 0; allowed: "),
        ('exec = "99 ms"', "limits.exec is '99 ms'; allowed: "),
        ("exec = 1.5", "limits.exec is 1.5; allowed: "),
        ("exec = true", "limits.exec is True; allowed: "),
        ('output = "65 MB"', "limits.output is '65 MB'; allowed: "),
        ('output = "63 KB"', "limits.output is '63 KB'; allowed: "),
        ('memory = "15 MB"', "limits.memory is '15 MB'; allowed: "),
        ('file_size = "65 TB"', "limits.file_size is '65 TB'; allowed: "),
        ('preview = "63 KB"', "limits.preview is '63 KB'; allowed: "),
        ('waiting = "65 TB"', "limits.waiting is '65 TB'; allowed: "),
        ('idle = "999 ms"', 'limits.idle is \'999 ms\'; allowed: a time from "1 s" to "168 h"'),
        ('idle = "169 h"', "limits.idle is '169 h'; allowed: "),
        ("sessions = 0", "limits.sessions is 0; allowed: a whole number from 1 to 1000"),
        ("processes = 7", "limits.processes is 7; allowed: a whole number from 8 to 1000000"),
        ('processes = "8"', "limits.processes is '8'; allowed: a whole number"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(tmp_path: Path, line: str, said: str) -> None:
    assert find_problem(tmp_path, f"[limits]\n{line}").startswith(f"line 2: {said}")


@pytest.mark.parametrize(
    "line",
    [
        'exec = "100 ms"', "exec = 600", 'output = "64 KB"', 'output = "64 MB"', 'memory = "16 MB"', "processes = 8",
        'memory = "64 TB"', 'file_size = "4 KB"',
    ],
)  # fmt: skip
def test_the_ends_of_a_range_are_in_it(tmp_path: Path, line: str) -> None:
    assert load_with(tmp_path, f"[limits]\n{line}").sources[f"limits.{line.partition(' ')[0]}"].startswith("user file")


def test_a_limit_in_another_form_is_told_in_the_right_one_where_that_is_allowed(tmp_path: Path) -> None:
    assert find_problem(tmp_path, 'limits.exec = "2m"').endswith('; did you mean "2 min"?')
    assert find_problem(tmp_path, 'limits.memory = "2 gib"').endswith('; did you mean "2 GB"?')
    assert find_problem(tmp_path, 'limits.exec = "20m"').endswith("a whole number of seconds")


@pytest.mark.parametrize("name", ["BASH_ENV", "LD_PRELOAD", "GIT_DIR", "NODE_OPTIONS", "PYTHONPATH", "ld_library_path"])
def test_a_variable_that_steers_programs_is_refused_by_name(tmp_path: Path, name: str) -> None:
    said = find_problem(tmp_path, f'sandbox.environment = ["NODE_ENV", "{name}"]')
    assert said.endswith(f"; '{name}' controls how programs start and what they load")


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "db_password", "SSH_AUTH_SOCK", "GH_PAT"])
def test_a_variable_with_the_name_of_a_secret_is_refused(tmp_path: Path, name: str) -> None:
    assert find_problem(tmp_path, f'sandbox.environment = ["{name}"]').endswith(f"; '{name}' has the name of a secret")


def test_a_variable_that_is_made_here_is_refused(tmp_path: Path) -> None:
    assert find_problem(tmp_path, 'sandbox.environment = ["PATH"]').endswith("; 'PATH' is set again for every command")


@pytest.mark.parametrize("name", ["A=B", "", "1A", "BASH_FUNC_x%%", "Ä", "A\\u0000"])
def test_what_is_no_name_of_a_variable_is_refused(tmp_path: Path, name: str) -> None:
    assert "; allowed: a list of variable names, " in find_problem(tmp_path, f'sandbox.environment = ["{name}"]')


@pytest.mark.parametrize("tier", ["-1", "4", '"2"', "2.0", "true"])
def test_there_are_four_tiers(tmp_path: Path, tier: str) -> None:
    assert find_problem(tmp_path, f"sandbox.tier = {tier}").endswith("; allowed: 0, 1, 2 or 3")


@pytest.mark.parametrize("path", ["/", "//", "~", "~/", "opt/sdk", "../sdk"])
def test_a_toolchain_is_a_place_and_not_everything(tmp_path: Path, path: str) -> None:
    assert "; allowed: a list of folders and files" in find_problem(tmp_path, f'sandbox.toolchains = ["{path}"]')


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("~/.", "which contains the home folder"),
        ("~/../home/.", "which contains the home folder"),
        ("/..", "which contains the home folder"),
        ("~/.local/state", "which handrail keeps its own files in"),
        ("~/.ssh", "where programs keep credentials"),
        ("~/.config", "where programs keep credentials"),
        ("~/.config/gh", "where programs keep credentials"),
        ("~/a/../.aws", "where programs keep credentials"),
        ("~/link", "where programs keep credentials"),
    ],
)
def test_a_toolchain_that_would_bare_too_much_is_refused(tmp_path: Path, path: str, why: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "link").symlink_to(".ssh")
    assert find_problem(tmp_path, f'sandbox.toolchains = ["/opt/sdk", "{path}"]').endswith(why)


@pytest.mark.parametrize("path", ["~/.cargo", "~/.m2", "~/.local/bin", "/opt", "~/.config/yarn"])
def test_a_toolchain_may_be_any_other_place(tmp_path: Path, path: str) -> None:
    expected = path.replace("~", str(tmp_path / "home"))
    assert load_with(tmp_path, f'sandbox.toolchains = ["{path}"]').settings.sandbox.toolchains == (expected,)


def test_a_trusted_project_may_ask_for_a_better_sandbox_and_never_for_a_weaker_one(tmp_path: Path) -> None:
    stricter = load_with(tmp_path, "sandbox.tier = 1", "sandbox.tier = 2\nsandbox.least = 2")
    assert (stricter.settings.sandbox.tier, stricter.settings.sandbox.least) == (2, 2)
    looser = load_with(tmp_path, "sandbox.least = 2", "sandbox.tier = 0\nsandbox.least = 1")
    assert (looser.settings.sandbox.tier, looser.settings.sandbox.least) == (3, 2)
    assert len(looser.ignored) == 2


def test_of_two_spellings_of_one_limit_none_is_looser(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "handrail.toml").write_text('limits.exec = "2 min"')
    loaded = load({"HOME": str(tmp_path)}, {}, str(tmp_path / "shop"), trusted=False)
    assert (loaded.settings.limits.exec, loaded.ignored) == ("2 min", ())
