"""Git configuration files: how they are read, and which settings are unsafe."""

import pytest

from handrail.policy.git_config import (
    compare_git_settings,
    disable_drivers,
    find_unsafe_git_settings,
    is_core_config,
    list_included_paths,
    parse_git_config,
)

INITIAL = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
CORE = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
BRANCH = '[branch "feature/x"]\n\tremote = origin\n\tmerge = refs/heads/feature/x\n'
REMOTE = '[remote "origin"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'


def test_settings_are_read_as_git_reads_them() -> None:
    text = '[A.B] x = 1\n[c "d\\"\\\\e"]y=two\\\n three\n z = "a\\"b" c\n nothing\n[broken\n = 5\nx = "open'
    config = parse_git_config(text)
    assert [(one.section, one.part, one.key, one.value) for one in config.settings if one.written is not None] == [
        ("a", "b", "x", "1"),
        ("c", 'd"\\e', "y", "two three"),
        ("c", 'd"\\e', "z", 'a"b c'),
        ("c", 'd"\\e', "x", "open"),
    ]
    assert not config.is_understood


@pytest.mark.parametrize(
    "text",
    ["", CORE, CORE + BRANCH, "# said\n; and\n\n" + CORE, "[user]\n\tname = A \"B\" C\n\temail=a@b\n",
     "[Core]\n\tFileMode = false\n", "[pull]\n\trebase = true\n\tff = only\n", '[branch "a"]\n\tremote = .\n'],
)  # fmt: skip
def test_what_steers_nothing(text: str) -> None:
    assert find_unsafe_git_settings(text) == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[core]\n\thooksPath = x\n", "core.hookspath"),
        ("[core]\n\tfsmonitor = true\n", "core.fsmonitor"),
        ("[core]\n\tsshCommand = x\n", "core.sshcommand"),
        ("[core]\n\tbare = true\n", "core.bare"),
        ("[core]\n\tfilemode\n", "core.filemode"),
        ('[filter "lfs"]\n\tclean = x\n', "filter.lfs.clean"),
        ('[diff "x"]\n\ttextconv = x\n', "diff.x.textconv"),
        ("[alias]\n\tst = !x\n", "alias.st"),
        ("[include]\n\tpath = x\n", "include.path"),
        ('[branch "a"]\n\tremote = https://example.org\n', "branch.a.remote"),
        ('[core "x"]\n\tbare = false\n', "core.x.bare"),
        (REMOTE, "remote.origin.url"),
    ],
)
def test_what_steers_git_is_named(text: str, name: str) -> None:
    found = find_unsafe_git_settings(text)
    assert found is not None
    assert found[0].name == name


@pytest.mark.parametrize(
    "text",
    ["\ufeff[core]\n", "[core] bare = false\n", "[core]\n\tbare = fal\\\nse\n", "[core]\n\tbare = false\r\n",
     "bare = false\n", '[remote "a\\"b"]\n\turl = x\n', "[core]\n\t= x\n", "[core]\n\tname = x\\"],
)  # fmt: skip
def test_what_git_would_read_in_another_way_is_not_understood(text: str) -> None:
    assert find_unsafe_git_settings(text) is None


def test_a_clone_may_say_where_it_came_from() -> None:
    assert find_unsafe_git_settings(CORE + REMOTE + BRANCH, clone=True) == ()
    for url in ("ext::sh -c x", "-x", "a b", "https://x/`y`"):
        assert find_unsafe_git_settings(f'[remote "origin"]\n\turl = {url}\n', clone=True), url


def test_only_what_came_went_or_became_another_counts() -> None:
    steered = CORE + "[core]\n\thooksPath = x\n"
    assert compare_git_settings(steered, steered + BRANCH) == ()
    assert compare_git_settings(steered, CORE) == ("core.hookspath",)
    assert compare_git_settings(CORE, steered) == ("core.hookspath",)
    assert compare_git_settings(steered, steered.replace("= x", "= y")) == ("core.hookspath",)


def test_of_two_the_later_holds_so_their_order_counts() -> None:
    one, two = "[core]\n\thooksPath = a\n", "[core]\n\thooksPath = b\n"
    assert compare_git_settings(one + two, two + one) == ("core.hookspath",)


def test_what_is_not_understood_is_not_compared() -> None:
    assert compare_git_settings("[core] x = y\n", "[core] x = y\n") == ()
    assert compare_git_settings("[core] x = y\n", CORE) is None
    assert compare_git_settings(CORE, "[core] x = y\n") is None


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('[filter "lfs"]\n\tclean = x', "lfs"),
        ('[FILTER\t"Lfs"] clean = x', "Lfs"),
        ("[filter.Lfs]clean=x", "lfs"),
        ('[core] [filter.a.B "c\\"d\\e]"]', 'a.b.c"de]'),
        ('[filter ""]', ""),
        ('# [filter "said"]', "said"),
    ],
)
def test_every_filter_that_a_configuration_may_define_is_disabled(head: str, name: str) -> None:
    assert dict(disable_drivers(f"{CORE}{head}\n")) == {
        f"filter.{name}.{key}": value
        for key, value in {"clean": "", "smudge": "", "process": "", "required": "false"}.items()
    }


def test_text_converters_are_replaced_and_other_drivers_left_alone() -> None:
    assert disable_drivers('[diff "pdf"]\n\ttextConv = pdftotext\n') == (("diff.pdf.textconv", "cat"),)
    assert disable_drivers('[diff "go"]\n\txfuncname = func\n[diff]\n\trenames = true\n') == ()
    assert disable_drivers("[filter]\n\tclean = x\n[diff]\n\ttextconv = x\n" + CORE + REMOTE) == ()


def test_files_that_a_configuration_may_include() -> None:
    included = '[include] path = ../a # said\n[includeIf "onbranch:x"]\n\tPATH="b\\tc\\\\"d\n'
    assert list_included_paths(f"{included}[core]\n\thooksPath = h\\\n/i\n\tpath =\n") == ("../a", "b\tc\\d", "h/i")


@pytest.mark.parametrize(
    "text", [INITIAL, INITIAL.rstrip("\n"), "[core]", "[core]\n\tbare=false\n  ignoreCase = true \n"]
)
def test_a_configuration_of_core_keys_is_harmless(text: str) -> None:
    assert is_core_config(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "bare = false\n",
        "[core]\n[core]\n",
        "\ufeff[core]\n",
        "[core] bare = false\n",
        "[core]\n\tfsmonitor = /tmp/x\n",
        "[core]\n\tfsmonitor = true\n",
        "[core]\n\thooksPath = x\n",
        "[core]\n\tworktree = x\n",
        "[core]\n\tsshcommand = x\n",
        "[core]\n\teditor = x\n",
        "[core]\n\tpager = x\n",
        "[core]\n\tattributesfile = x\n",
        "[core]\n\tbare = true\n",
        "[core]\n\trepositoryformatversion = 1\n",
        "[core]\n\tbare\n",
        "[core]\n\tbare = false\n\tbare = false\n",
        "[core]\n\tbare = false # fine\n",
        "[core]\n\tbare = fal\\\nse\n",
        '[core]\n\tbare = "false"\n',
        "[core]\n\tbare = false\r\n\tfilemode = true\n",
        "[core]\n\tbare = false\n\n[include]\n\tpath = x\n",
        "[core]\n# [include]\n",
        "[core]\n\tbare = false\n\x0c[include]\n\tpath = x\n",
        "[core]\n\tbare = false\x00\n",
        "[Core]\n\tbare = false\n",
        '[core "x"]\n\tbare = false\n',
        '[include]\n\tpath = x\n',
        '[includeIf "gitdir:/"]\n\tpath = x\n',
        '[filter "lfs"]\n\tclean = x\n',
        '[alias]\n\tst = !x\n',
        "[init]\n\tdefaultBranch = main\n",
        "[extensions]\n\tworktreeConfig = true\n",
    ],
)  # fmt: skip
def test_any_other_configuration_is_not(text: str) -> None:
    assert not is_core_config(text)
