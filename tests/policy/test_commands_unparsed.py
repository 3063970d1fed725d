"""Commands that handrail cannot parse: the display parser can only make the decision stricter."""

import pytest
from tests.policy.deciding import EXEC, ROOT, decided, facts_of

from handrail.policy.config import Rule
from handrail.policy.decide import PolicyConfig, decide
from handrail.protocol.decisions import MODES, CommandFact, Decision, DisplayedCommand, Facts


def verdicts(command: str, **more: object) -> str:
    """One letter a mode: a allow, c confirm, d deny; plan, ask, auto, full."""
    return "".join(decided(command, mode, **more).decision[0] for mode in MODES)


NO_PUSH = Rule(id="no-push", verdict="deny", pattern="git push")
ASK_PUSH = Rule(id="ask-push", verdict="confirm", pattern="git push")


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("ls && bash -c 'rm -rf $HOME'", "deny.home"),
        ("bash -c 'rm ../x; echo $Y'", "fs.outside"),
        ("bash -c 'cat .env; echo $Y'", "fs.secret"),
        ("bash -c 'echo $Y > .env'", "fs.secret"),
        ("cd a; echo $X > .env", "fs.secret"),
        ("cd a; cat .env; echo $X", "fs.secret"),
        ("cd a; rm /etc/x; echo $X", "fs.outside"),
        ("for f in a; do sudo rm -rf /etc/x; done", "fs.outside"),
        ("for f in a; do env nice rm ../x; done", "fs.outside"),
        ("{ ls; } > ../x", "fs.outside"),
        ("{ ls; } > /dev/sda", "deny.device"),
        ("f() { f | f & }; f", "deny.fork-bomb"),
        ("bash -c 'f() { f | f & }; f $X'", "deny.fork-bomb"),
        (f"env chmod 755 {ROOT}", "deny.workspace"),
        (f"env rm -rf {ROOT}", "deny.workspace"),
        ("env touch a ../b", "fs.outside"),
        ("cd a && env touch ../b ../../c", "fs.outside"),
        ("cd a; env touch ../b", "fs.outside"),
        (f"for f in a; do chmod 755 {ROOT}; done", "deny.workspace"),
        ("bash -c 'mkfs.ext4 $X'", "deny.format"),
        ("npx rm ../x", "fs.outside"),
        ("npx -c 'rm ../x'", "fs.outside"),
    ],
)
def test_nothing_that_a_command_is_wrapped_in_makes_a_no_milder(command: str, rule: str) -> None:
    assert verdicts(command, tier=3) == "dddd"
    assert decided(command, tier=3).rule == rule


@pytest.mark.parametrize(
    ("command", "expected", "rule"),
    [
        ("touch a $X", "dcaa", "exec.syntax"),
        ("rm $X", "dcaa", "exec.syntax"),
        ("curl $X", "dcca", "exec.syntax"),
        ("{ ls; } > a", "dcaa", "exec.syntax"),
        ("echo $X >| a", "dcaa", "exec.syntax"),
        ("env touch a", "dcaa", "exec.wrapper"),
        ("env rm a", "dcaa", "exec.wrapper"),
        ("env rm '~'", "dcaa", "exec.wrapper"),
        ("bash -c 'rm a'", "dcaa", "exec.interpreter"),
        ("cd a && env touch ../b", "dcaa", "exec.wrapper"),
        ("cd a; rm ../x; echo $X", "dcaa", "exec.syntax"),
        ("for f in a; do env touch build; done", "dcaa", "exec.syntax"),
    ],
)
def test_what_was_seen_is_judged_by_what_it_does(command: str, expected: str, rule: str) -> None:
    assert verdicts(command, tier=3) == expected
    assert decided(command, tier=3).rule == rule


def test_the_network_asks_also_where_it_was_only_seen() -> None:
    found = decided("curl $X", "auto", tier=3)
    assert (found.decision, found.rule, found.subject) == ("confirm", "exec.network", "curl $X")


@pytest.mark.parametrize(
    "command",
    ["for f in a; do sudo git push; done", "bash -c 'sudo git push $X'", "echo $(env git push)", "env sudo git push"],
)
def test_rules_that_refuse_or_ask_are_about_what_was_seen_too(command: str) -> None:
    assert decided(command, "full", tier=3, rules=(NO_PUSH,)).rule == "no-push"
    assert decided(command, "full", tier=3, rules=(ASK_PUSH,)).rule == "ask-push"
    assert decided(command, "full", tier=3, rules=(ASK_PUSH, NO_PUSH)).decision == "deny"


@pytest.mark.parametrize(
    "command",
    ["env cat docs/b", "env cat a src/a docs/b", "bash -c 'ls > a 2> docs/b'",
     "cd docs && env cat b", "cd x; cat docs/b; echo $X", "cd x; env cat ./docs//b; echo $X"],
)  # fmt: skip
def test_a_rule_for_every_tool_is_about_each_path_in_a_wrapper(command: str) -> None:
    rules = (
        Rule(id="no-docs", verdict="deny", pattern="docs/**", tool="*"),
        Rule(id="src", verdict="allow", pattern="src/**", tool="*"),
    )
    assert decided(command, "full", rules=rules).rule == "no-docs"
    assert decided(command, "full", rules=rules[1:]).rule.startswith("exec.")


def test_every_command_that_was_seen_is_a_part_as_it_stands_in_the_text() -> None:
    found = decided("{ ls -la; touch 'a'; } > b; echo $X")
    parts = [(part.subject, part.rule) for part in found.parts]
    assert parts == [
        ("{ ls -la; touch 'a'; } > b; echo $X", "exec.syntax"),
        ("> b", "fs.write"),
        ("ls -la", "exec.read-only"),
        ("touch 'a'", "exec.write"),
        ("echo $X", "exec.read-only"),
    ]
    assert found.reason == "it uses braces, which the shell may expand ({ }), so handrail cannot analyse it"


def test_what_was_seen_without_its_text_is_shown_by_its_words() -> None:
    seen = (DisplayedCommand(words=("ls", "-la")),)
    fact = CommandFact(text="ls $X", seen=seen)
    found = decide(EXEC, None, Facts(command=fact), PolicyConfig("ask"))
    assert [part.subject for part in found.parts] == ["ls $X", "ls -la"]


def test_what_the_display_parser_could_not_see_is_refused() -> None:
    for text in ("echo $X", "bash -c 'echo $X'"):
        found = decide(EXEC, None, Facts(command=CommandFact(text=text)), PolicyConfig("full"))
        assert (found.decision, found.rule, found.code) == ("deny", "exec.limit", "POLICY_DENIED")
    assert found.reason == "it starts a command that handrail cannot analyse"


def test_what_starts_more_than_can_be_looked_at_is_refused() -> None:
    found = decided("env " * 150 + "rm x", "full")
    assert (found.decision, found.rule) == ("deny", "exec.limit")
    assert found.reason == "it starts more commands than handrail can analyse"


def judged(count: int, *last: DisplayedCommand, text: str = "echo $X") -> Decision:
    seen = (*(DisplayedCommand(words=("ls", f"f{n}")) for n in range(count)), *last)
    return decide(EXEC, None, Facts(command=CommandFact(text=text, seen=seen)), PolicyConfig("full"))


def test_fifty_parts_are_shown_and_what_is_behind_them_counts_all_the_same() -> None:
    never = DisplayedCommand(words=("rm", "-rf", "/"))
    assert len(judged(50).parts) == 51
    assert len(judged(60).parts) == 51
    found = judged(60, never)
    assert (found.decision, len(found.parts)) == ("deny", 52)
    assert len(judged(60, *[never] * 60).parts) == 101
    assert [part.subject for part in judged(49, never).parts].count("rm -rf /") == 1
    strings = judged(60, never, text="bash -c 'echo $X'")
    assert (strings.decision, len(strings.parts)) == ("deny", 2)
    assert len(judged(0, *[never] * 60, text="bash -c 'echo $X'").parts) == 51


def test_a_text_that_is_too_long_for_the_lexer_may_still_be_looked_into() -> None:
    """But one that is short enough and still has too much in it is refused."""
    letters = "é" * 5000
    assert decided(f"echo {letters}").decision == "confirm"
    assert decided("echo " + "a" * 8188).decision == "confirm"
    assert decided("echo " + "a" * 8187).decision == "allow"
    assert decided(f"{'ls;' * 40} echo {'a' * (8192 - 126)}").rule == "exec.limit"
    assert decided(f"{'ls;' * 40} echo {'a' * (8193 - 126)}").rule == "exec.syntax"


def test_the_reason_for_what_nobody_can_read_comes_before_what_the_mode_says() -> None:
    why = "it uses a variable or a substitution ($), so handrail cannot analyse it"
    assert decided("echo $X").reason == why
    assert decided("echo $X", "plan").reason == f"{why}; plan mode runs only commands that handrail can prove harmless"


def test_facts_of_a_command_that_needs_no_display_parser_have_none() -> None:
    assert facts_of("ls").command == CommandFact(text="ls")
