"""Everyday commands, and what each mode decides about them."""

import pytest
from tests.policy.deciding import EXEC, ROOT, decided

from handrail.code.shell import find_shell_commands
from handrail.policy.config import Grant, RestrictedProfile, Rule
from handrail.policy.decide import PolicyConfig, decide
from handrail.policy.parse import parse_command
from handrail.protocol.decisions import MODES, CommandFact, Facts


def verdicts(command: str, **more: object) -> str:
    """One letter a mode: a allow, c confirm, d deny; plan, ask, auto, full."""
    return "".join(decided(command, mode, **more).decision[0] for mode in MODES)


PROVEN, UNPROVEN, NETWORK, NEVER = "aaaa", "dcca", "dcca", "dddd"


@pytest.mark.parametrize(
    ("command", "expected", "rule"),
    [
        ("ls -la src", PROVEN, "exec.read-only"),
        ("git status", PROVEN, "exec.read-only"),
        ("cat a.py | grep -n foo | head -5", PROVEN, "exec.read-only"),
        ("cd src && ls", PROVEN, "exec.cd"),
        ("cd src 2>/dev/null && ls", PROVEN, "exec.cd"),
        ("ls 2>&1 >/dev/null", PROVEN, "exec.read-only"),
        ("wc -l < a.py", PROVEN, "exec.read-only"),
        ("cat /tmp/x", PROVEN, "exec.read-only"),
        (f"cat {ROOT}/a.py", PROVEN, "exec.read-only"),
        ("cd src && cat ../a.py", PROVEN, "exec.cd"),
        ("cat docs/a.md", PROVEN, "exec.read-only"),
        ("python x.py", UNPROVEN, "exec.interpreter"),
        ("./run.sh", UNPROVEN, "exec.script"),
        ("frobnicate", UNPROVEN, "exec.unknown"),
        ("sort -o out in", UNPROVEN, "exec.option"),
        ("cd", UNPROVEN, None),
        ("cd -", UNPROVEN, None),
        ("curl example.org", NETWORK, "exec.network"),
        ("git push", NETWORK, "git.network"),
        ("ls > out.txt", UNPROVEN, "fs.write"),
        ("ls >> out.txt", UNPROVEN, "fs.write"),
        ("ls 2> out.txt", UNPROVEN, "fs.write"),
        ("touch a", UNPROVEN, "fs.write"),
        ("rm a", UNPROVEN, "fs.delete"),
        ("rm .git/config", UNPROVEN, "fs.protected"),
        ("ls > .github/workflows/ci.yml", UNPROVEN, "fs.protected"),
        ("cat /etc/passwd", NEVER, "fs.outside"),
        ("cat ../other/x", NEVER, "fs.outside"),
        ("cd .. && ls", NEVER, "fs.outside"),
        ("true || cd src && cat ../a.py", NEVER, "fs.outside"),
        ("cd self/../other && cat x", NEVER, "fs.outside"),
        ("cd self && cd ../other && cat x", NEVER, "fs.outside"),
        ("cd src && cd ../lib && cat x", PROVEN, "exec.cd"),
        ("cd src && ls && cd .. && ls", PROVEN, "exec.cd"),
        ("cat out/passwd", NEVER, "fs.outside"),
        ("cat < /etc/passwd", NEVER, "fs.outside"),
        ("git diff out/passwd README.md", NEVER, "fs.outside"),
        ("git diff docs/a.md README.md", PROVEN, "exec.read-only"),
        ("git log origin/main..HEAD", PROVEN, "exec.read-only"),
        ("git show HEAD -- '*nv'", NEVER, "fs.secret"),
        ("git show HEAD -- '\\.env'", NEVER, "fs.secret"),
        ("git show HEAD -- ?env", NEVER, "fs.secret"),
        ("git show HEAD -- '*.json' '*s' '*'", PROVEN, "exec.read-only"),
        ("grep -r --include=.env '' .", NEVER, "fs.secret"),
        ("grep -r --include '*.pem' '' .", NEVER, "fs.secret"),
        ("grep -r --include='*.py' --exclude=.env x .", PROVEN, "exec.read-only"),
        ("rg --hidden -g .env ''", NEVER, "fs.secret"),
        ("rg -g '**/{.env,x}' ''", NEVER, "fs.secret"),
        ("rg --hidden --iglob '*ENV' ''", NEVER, "fs.secret"),
        ("rg --type-add 'x:.env' -tx ''", NEVER, "fs.secret"),
        ("rg -g '!.env' -g '/src/*.py' -g '*.{ts,json}' --type-add 'w:*.html' x", PROVEN, "exec.read-only"),
        ("cat /dev/null", PROVEN, "exec.read-only"),
        ("head -c 16 /dev/urandom", PROVEN, "exec.read-only"),
        ("head --bytes=1K /dev/zero", PROVEN, "exec.read-only"),
        ("cat /dev/zero", NEVER, "fs.outside"),
        ("sort /dev/urandom", NEVER, "fs.outside"),
        ("head -n 5 /dev/zero", NEVER, "fs.outside"),
        ("head -c -5 /dev/zero", NEVER, "fs.outside"),
        ("head -c 5 -n 5 /dev/zero", NEVER, "fs.outside"),
        ("cat < /dev/stdout", NEVER, "fs.outside"),
        ("cat < /dev/null", PROVEN, "exec.read-only"),
        ("ls > /dev/stdin", NEVER, None),
        ("ls > /etc/x", NEVER, "fs.outside"),
        ("cat src/*/../../../x", UNPROVEN, "exec.syntax"),
        ("rm ../x; echo $Y", NEVER, "fs.outside"),
        ("cd a; rm ../x; echo $Y", UNPROVEN, "exec.syntax"),
        ("echo $Y > ../x", NEVER, "fs.outside"),
        ("cat .env", NEVER, "fs.secret"),
        ("cat secret", NEVER, "fs.secret"),
        ("cat src/.env", NEVER, "fs.secret"),
        ("cat keys/*.pem", NEVER, "fs.secret"),
        ("frobnicate .env", NEVER, "fs.secret"),
        ("frobnicate secret", NEVER, "fs.secret"),
        ("git show HEAD:.env", NEVER, "fs.secret"),
        ("cat $HOME/.ssh/id_rsa", NEVER, "fs.secret"),
        ("rm -rf /", NEVER, None),
        ("rm -rf .", NEVER, None),
        ("rm -rf src/..", NEVER, "deny.workspace"),
        ("chmod -R 777 src/..", NEVER, "deny.workspace"),
        ("sudo rm -rf /", NEVER, None),
        ("for f in a; do rm -rf /etc/x; done", NEVER, None),
        ("rm -rf ~", NEVER, None),
        (":(){ :|:& };:", NEVER, "deny.fork-bomb"),
        ("echo $(rm -rf /)", NEVER, None),
        ("ls && rm -rf /", NEVER, None),
        ("ls > /dev/sda", NEVER, None),
        ("echo $HOME", UNPROVEN, "exec.syntax"),
        ("time touch a", UNPROVEN, "fs.write"),
        ("timeout 5 rm a; echo $?", UNPROVEN, "exec.syntax"),
        ("for f in 1 2; do sudo rm -rf build; done", UNPROVEN, "exec.syntax"),
        ("timeout 5 rm ../x; echo $?", NEVER, "fs.outside"),
        ("for f in 1 2; do sudo rm -rf out/passwd; done", NEVER, "fs.outside"),
        ("for f in *.py; do wc -l $f; done", UNPROVEN, "exec.syntax"),
    ],
)  # fmt: skip
def test_a_command_gets_the_verdict_of_what_it_does(command: str, expected: str, rule: str | None) -> None:
    assert verdicts(command) == expected
    found = decided(command)
    assert rule is None or found.rule == rule
    assert found.reason


@pytest.mark.parametrize(
    ("command", "auto"),
    [("python x.py", "allow"), ("rm a", "allow"), ("touch a", "allow"), ("ls > x", "allow"), ("echo $X", "allow"),
     ("curl x", "confirm"), ("rm .git/config", "confirm"), ("cat .env", "deny"), ("ls", "allow")],
)  # fmt: skip
def test_in_auto_what_a_layer_can_take_back_runs_unasked(command: str, auto: str) -> None:
    assert decided(command, "auto", tier=3).decision == auto
    assert decided(command, "auto", tier=3, background=True).decision in {"confirm", "deny"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", ["ls", "python x.py", "echo $X", "rm a"])
def test_without_a_sandbox_nothing_runs_unasked(mode: str, command: str) -> None:
    found = decided(
        command, mode, tier=0, rules=(Rule(id="all", verdict="allow", pattern=command.split(maxsplit=1)[0]),)
    )
    assert found.decision != "allow"


def test_without_namespaces_tmp_is_everybodys() -> None:
    assert decided("cat /tmp/x", tier=1).rule == "fs.outside"
    assert decided("cat /tmp/../etc/passwd").rule == "fs.outside"


@pytest.mark.parametrize("command", ["ls && rm x", "rm x && ls", "ls; rm x", "ls | rm x", "ls || rm x", "cd a && rm x"])
def test_the_strictest_part_of_a_chain_decides_and_every_part_is_shown(command: str) -> None:
    found = decided(command)
    assert (found.decision, found.rule, found.subject) == ("confirm", "fs.delete", "rm x")
    assert {part.decision for part in found.parts} == {"allow", "confirm"}


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("cd a && cat x", "a/x"),
        ("cd a; cat x", "x"),
        ("cd a; cat x", "a/x"),
        ("cd a || cat x", "x"),
        ("cd a && cd b && cat x", "a/b/x"),
        ("cd a && ls; cat x", "x"),
        ("cd a/../b && cat x", "b/x"),
        ("cd a/../b && cat x", "a/../b/x"),
        ("cd a && cd ../b && cat x", "a/../b/x"),
        ("true || cd a && cat x", "x"),
        ("true || cd a && cat x", "a/x"),
        ("true || cd a && cd b && cat x", "b/x"),
        ("cd a && cat ../x", "a/../x"),
        ("cd a | cat x", "x"),
        ("ls | cd a && cat x", "x"),
    ],
)
def test_cd_is_followed_into_every_folder_that_it_may_lead_to(command: str, path: str) -> None:
    assert path in {use.path for use in parse_command(command).path_uses()}


def test_a_command_that_changes_folders_without_end_is_refused() -> None:
    assert decided("; ".join(f"cd d{n}" for n in range(20)), "full").decision == "deny"


ALLOW = Rule(id="tests", verdict="allow", pattern="pytest", because="tests run often")
ASK = Rule(id="ask-ls", verdict="confirm", pattern="ls")
DENY = Rule(id="no-push", verdict="deny", pattern="git push")


def test_a_rule_outranks_the_mode_and_the_strictest_rule_wins() -> None:
    assert verdicts("pytest -q tests", rules=(ALLOW,)) == "daaa"  # plan promises that nothing is changed
    assert verdicts("ls", rules=(ASK,)) == "cccc"
    assert verdicts("git push", rules=(DENY,)) == "dddd"
    both = (ALLOW, Rule(id="no", verdict="deny", pattern="pytest tests"))
    assert (decided("pytest tests", rules=both).rule, decided("pytest", rules=both).rule) == ("no", "tests")


@pytest.mark.parametrize(
    "command",
    ["sudo git push", "env A=b git push", "bash -c 'git push'", "echo $(git push)", "timeout 5 git push",
     "xargs git push", "/usr/bin/git push", "if true; then git push; fi", "echo git push | sh",
     "git -c alias.p=push p", "hyperfine 'git push'", "x=push; git $x", "direnv exec . git push"],
)  # fmt: skip
def test_a_deny_rule_is_also_about_what_is_inside(command: str) -> None:
    assert decided(command, "full", rules=(DENY,)).rule == "no-push"


@pytest.mark.parametrize(
    "command",
    ["pytest /etc", "pytest ../x", "pytest --basetemp=/", "python -m pytest", "pytest; curl x", "pytest $X",
     "pytest out/x", "env pytest", "pytest > x", "pytest .env", "/tmp/pytest", "pytest --junitxml=handrail.toml",
     "pytest .git/config"],
)  # fmt: skip
def test_an_allow_rule_is_about_plain_words_inside_the_roots_only(command: str) -> None:
    assert decided(command, rules=(ALLOW,)).decision != "allow"


@pytest.mark.parametrize(
    "command",
    ["git -c core.pager=x log", "git -c alias.x=!sh x", "git -C sub --exec-path=x log", "git --git-dir=x fetch"],
)
def test_a_rule_that_allows_git_allows_no_other_configuration(command: str) -> None:
    for any_args in (False, True):
        rules = (Rule(id="g", verdict="allow", pattern="git", any_args=any_args),)
        assert decided("git -C sub --no-pager fetch", rules=rules).decision == "allow"
        assert decided("git commit -c HEAD", rules=rules).decision == "allow"
        assert decided(command, rules=rules).decision == "confirm"


@pytest.mark.parametrize(
    "command",
    ["cat src/a.py", "cd src && ls", "cat < src/a.py", "grep -r x src/api", "rm src/a.py", "ls > src/x", "cp src/a b",
     "python src/a.py", "cat docs/../src/a.py", "for i in 1; do cat src/a.py; done", "echo $x > ./src/a",
     "sed -i s/a/b/ src/a.py", "sh -c 'cat src/a.py'"],
)  # fmt: skip
def test_a_rule_about_paths_for_every_tool_is_about_commands_too(command: str) -> None:
    for verdict, expected in (("deny", "deny"), ("confirm", "confirm")):
        rules = (Rule(id="r", verdict=verdict, pattern="src/**", tool="*"),)
        found = decided(command, "full", rules=rules)
        assert (found.decision, found.rule) == (expected, "r")


def test_a_rule_about_paths_follows_links_and_lifts_nothing() -> None:
    rules = (Rule(id="r", verdict="confirm", pattern="manual/**", tool="*"),)
    assert decided("cat docs/a.md", "full", rules=rules).rule == "r"
    assert decided("cat src/a.md", "full", rules=rules).decision == "allow"
    assert decided("cat manual/.env", "full", rules=rules).rule == "fs.secret"
    assert decided("cat ../manual/x", "full", rules=rules).rule == "fs.outside"


@pytest.mark.parametrize("command", ["sh deploy.sh", "bash -x ./deploy.sh now", ". deploy.sh", "source ./deploy.sh"])
def test_a_deny_rule_for_a_script_is_also_about_the_shell_that_is_given_it(command: str) -> None:
    rules = (Rule(id="r", verdict="deny", pattern="./deploy.sh"),)
    assert decided(command, "full", rules=rules).rule == "r"
    assert decided("bash -c deploy", "full", rules=rules).decision == "allow"
    assert decided("sh halt", "full", rules=rules).decision == "allow"  # a file of the workspace, whatever its name


def test_no_rule_and_no_grant_lifts_what_is_built_in() -> None:
    rules = tuple(
        Rule(id=f"r{n}", verdict="allow", pattern=p, any_args=True) for n, p in enumerate(["rm", "cat", "cp"])
    )
    for command in ("rm -rf /", "rm -rf .", "cat .env", "cat /etc/passwd", "cp a /etc/x"):
        assert verdicts(command, rules=rules) == NEVER
    assert decided("cp a .git/config", rules=rules).decision == "confirm"  # the rule speaks of cp, not of this file


def test_a_rule_makes_a_question_about_a_protected_file_a_no_but_never_a_yes() -> None:
    for verdict, expected in (("allow", "confirm"), ("confirm", "confirm"), ("deny", "deny")):
        rules = (Rule(id="r", verdict=verdict, pattern="cp", any_args=verdict == "allow"),)
        assert decided("cp a .git/config", rules=rules).decision == expected


def test_a_grant_replaces_only_a_default_confirm_of_its_class() -> None:
    grants = (Grant(id="g1", command="git commit"),)
    assert decided("git commit -m x").parts == ()
    assert decided("git commit -m x", grants=grants).rule == "grant.g1"
    assert decided("git commit -m x && git push", grants=grants).decision == "confirm"
    assert decided("git commit -m x && ls", grants=grants).decision == "allow"
    assert decided("git commit -m x", "plan", grants=grants).decision == "deny"
    asks = (Rule(id="ask", verdict="confirm", pattern="git commit"),)
    assert decided("git commit -m x", grants=grants, rules=asks).rule == "ask"
    assert decided("python x.py", grants=(Grant(id="g2", command="python"),)).decision == "confirm"


def test_nobody_to_ask_means_no() -> None:
    assert verdicts("pytest", unattended=True) == "ddda"
    assert decided("pytest", unattended=True).code == "PERMISSION_DENIED"


RESTRICTED = RestrictedProfile(("ls", "cat", "git status", "git log --oneline", "node -v"), (".minds", ".tasklogs"))


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("ls", True), ("ls -la", True), ("git status", True), ("git status -s", True), ("git log --oneline", True),
        ("git log --oneline -5", True), ("node -v", True), ("cat .minds/a.md", True), ("ls .tasklogs", True),
        ("cat a.py", False), ("git log", False), ("node x.js", False), ("node -v x", False), ("ls && ls", False),
        ("ls > .minds/x", False), ("rm .minds/x", False), ("grep x .minds/a", False), ("ls $X", False),
        ("cat .env", False), ("pytest", False), ("ls --frob", False), ("cat < .minds/a", False),
        ("git log --oneline -n 3 --all", True), ("git status --porcelain", True), ("git log --oneline -p", False),
        ("git log --oneline a.py", False), ("git log --oneline -S x", False), ("git status src", False),
        ("cat .minds/*", False), ("ls .minds/*/x", False), ("cat /tmp/x", False), ("ls /tmp", False),
        ("ls -R", False), ("ls -lL .minds", False), ("ls --recursive", False),
    ],
)  # fmt: skip
def test_the_restricted_profile_runs_its_list_and_asks_nobody(command: str, allowed: bool) -> None:
    for mode in MODES:
        found = decided(command, mode, restriction=RESTRICTED)
        assert (found.decision, bool(found.reason)) == ("allow" if allowed else "deny", True)


def test_many_deletions_in_one_command_are_bulk() -> None:
    command = "rm " + " ".join(f"f{n}" for n in range(21))
    assert decided(command, "auto", tier=3).rule == "fs.bulk"
    assert decided(command, "auto", tier=3, bulk_deleted=21).decision == "allow"


def test_what_goes_on_after_the_call_asks() -> None:
    assert verdicts("ls", background=True) == "dcca"


@pytest.mark.parametrize("command", ["ls " * 2500, ";".join(["ls"] * 200), "echo $X " + "a" * 200_000])
def test_whatever_is_too_much_to_look_at_is_refused(command: str) -> None:
    assert verdicts(command) == NEVER
    assert decided(command).rule == "exec.limit"


@pytest.mark.parametrize("last", ["rm -rf /", "rm -rf ../x", "cat .env"])
def test_no_length_turns_a_no_into_a_question(last: str) -> None:
    for middle in ("ls " * 30, "ls " * 4000, "; ls" * 90, "; ls" * 3000):
        assert verdicts(f"echo {middle}; {last}") == NEVER


def test_a_path_that_nothing_is_known_about_is_refused() -> None:
    fact = CommandFact(text="cat a.py")
    assert decide(EXEC, None, Facts(command=fact), PolicyConfig("full")).rule == "fs.unknown"


def test_a_command_opens_no_folder_outside_though_file_tools_may_ask_for_one() -> None:
    assert verdicts("cat /etc/hosts", outside="ask") == NEVER
    assert verdicts("cp a /etc/x", outside="ask") == NEVER


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("sudo rm -rf /etc/x", "fs.outside"), ("env rm ../x", "fs.outside"), ("bash -c 'rm /etc/x'", "fs.outside"),
        ("sh -c 'cat .env'", "fs.secret"), ("xargs rm -rf /", "deny"), ("bash -c 'X=1; rm -rf $HOME'", "deny"),
        ("find . -exec rm -rf / +", "deny"), ("timeout 5 cp a ../b", "fs.outside"),
        ("bash -c 'ls > ../x'", "fs.outside"),
        ("bash -c 'ls > /dev/sda'", "deny"), ("sudo cat .env", "fs.secret"),
    ],
)  # fmt: skip
def test_what_a_wrapper_starts_is_refused_as_if_it_stood_alone(command: str, rule: str) -> None:
    assert verdicts(command) == NEVER
    assert decided(command).rule.startswith(rule)


def test_a_copy_onto_a_protected_name_asks_also_where_the_name_is_only_guessed() -> None:
    assert decided("cp a/handrail.toml .", "auto", tier=3).rule == "fs.protected"


def test_a_quoted_tilde_is_a_name_like_any_other() -> None:
    assert decided("rm -rf '~'").rule == "fs.delete"


def test_the_restricted_profile_leaves_nothing_running() -> None:
    found = decided("ls", background=True, restriction=RestrictedProfile(("ls",), (".minds",)))
    assert (found.decision, found.rule) == ("deny", "restricted.command")
    assert "runs nothing in the background" in found.reason


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("./run --config=a.toml -v <in >out", ("./run", "a.toml", "in", "out")),
        ("cd api && ./run x", ("cd", "api", "api/./run", "api/x")),
        ("sh -c './inner y'", ("sh", "./inner y", "./inner", "y")),
        ("for n in 1; do ./run $n; done", ("./run", "$n", "1")),
    ],
)
def test_every_word_of_a_command_is_a_path_that_it_may_be(command: str, paths: tuple[str, ...]) -> None:
    parsed = parse_command(command)
    seen = find_shell_commands(command) if parsed.needs_display else None
    assert set(parsed.word_paths(seen)) == set(paths)
