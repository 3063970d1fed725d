"""A server may do anything wrong: its own calls fail with words, and nothing else does."""

import os
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from serving import Place, code_of, comes_true, hostile, plain

from handrail import Handrail
from handrail.mcp.client import supervisor

SHORT = 'timeout = "1s"'
MEGABYTES = 1 << 10
"""As the kernel counts: in kilobytes."""


def the_other_works(rail: Handrail) -> bool:
    return rail.call("mcp__plain__echo", {"text": "still here"}).content == "still here"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to wait for what is tried again."""
    monkeypatch.setattr(supervisor, "_PAUSES", (0.01, 0.02, 0.03))


def test_one_that_never_answers_the_first_word_is_gone_on_without(place: Place) -> None:
    with place.session(plain() + hostile("HangsAtStart"), wait='[mcp]\nwait = "3s"\n') as rail:
        names = [spec.name for spec in rail.specs()]
        assert [name for name in names if name.startswith("mcp__other")] == []
        assert comes_true(lambda: the_other_works(rail))
        result = rail.call("mcp__other__echo", {"text": "hello"})
    assert code_of(result) == "UNKNOWN_TOOL"


def test_one_that_does_not_answer_a_call_is_given_up_in_time_and_told_so(place: Place) -> None:
    with place.session(hostile("HangsInCall", SHORT)) as rail:
        result = rail.call("mcp__other__echo", {"text": "hello"})
        assert comes_true(lambda: rail.call("mcp__other__variable", {"name": "NONE"}).content == "unset")
    assert code_of(result) == "TIMEOUT"
    assert "did not answer within 1 seconds" in result.content
    assert "mcp.servers.other.timeout" in result.content


def test_a_cancelled_call_ends_at_once_and_the_server_is_told(place: Place) -> None:
    found = place.found(hostile("HangsInCall"))
    with place.opened(found) as rail:
        rail.specs()
        program = found.sources[0]._supervisor.program  # pyright: ignore
        call_id = rail.new_call_id()
        with ThreadPoolExecutor() as pool:
            calling = pool.submit(rail.call, "mcp__other__echo", {"text": "hello"}, tool_call_id=call_id)
            assert comes_true(lambda: "called" in program.stderr_tail)
            assert rail.cancel_call(call_id)
            result = calling.result(30)
        assert comes_true(lambda: "told notifications/cancelled" in program.stderr_tail)
    assert code_of(result) == "CANCELLED"


@pytest.mark.parametrize("way", ["EndlessLine", "EndlessGarbage"])
def test_endless_output_ends_the_connection_and_takes_no_memory(place: Place, way: str) -> None:
    with place.session(plain() + hostile(way)) as rail:
        assert the_other_works(rail)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = rail.call("mcp__other__echo", {"text": "hello"})
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert the_other_works(rail)
    assert code_of(result) == "UNAVAILABLE"
    assert ("a message of more than" if way == "EndlessLine" else "not messages") in result.content
    assert grown < 100 * MEGABYTES


@pytest.mark.parametrize("way", ["EndlessMessages", "AsksForEver"])
def test_a_flood_of_messages_leaves_the_others_alone_and_takes_no_memory(place: Place, way: str) -> None:
    with place.session(plain() + hostile(way, SHORT)) as rail:
        assert the_other_works(rail)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = rail.call("mcp__other__echo", {"text": "hello"})
        assert the_other_works(rail)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert code_of(result) == "TIMEOUT"
    assert grown < 100 * MEGABYTES


def test_a_flood_of_errors_is_read_and_only_its_end_is_kept(place: Place) -> None:
    found = place.found(hostile("EndlessErrors"))
    with place.opened(found) as rail:
        result = rail.call("mcp__other__echo", {"text": "hello"})
        assert len(found.sources[0]._supervisor.program.stderr_tail) < 100_000  # pyright: ignore
    assert result.content == "hello"


def test_one_that_dies_in_a_call_is_told_of_with_its_last_words_and_is_back_for_the_next(place: Place) -> None:
    with place.session(hostile("DiesInCall")) as rail:
        died = rail.call("mcp__other__write", {"path": "x"})
        again = rail.call("mcp__other__echo", {"text": "back"})
    assert code_of(died) == "UNAVAILABLE"
    assert "it ended with exit code 7: cannot go on" in died.content
    assert ". Its effects are unknown" in died.content
    assert again.content == "back"


def test_one_that_dies_again_and_again_is_left_off_with_a_reason(place: Place) -> None:
    with place.session(plain() + hostile("DiesInCall")) as rail:
        for _ in range(4):
            assert code_of(rail.call("mcp__other__write", {"path": "x"})) == "UNAVAILABLE"
        assert comes_true(lambda: "mcp__other__echo" not in [spec.name for spec in rail.specs()])
        gone = rail.call("mcp__other__echo", {"text": "hello"})
        assert the_other_works(rail)
    assert code_of(gone) == "UNKNOWN_TOOL"


def test_one_that_cannot_start_says_why_and_no_secret(place: Place) -> None:
    found = place.found(hostile("DiesAtStart", 'env = { API_KEY = "${KEY}" }'), KEY="sk-verysecretindeed")
    (source,) = found.sources
    try:
        assert source.listed() == ()
        assert comes_true(lambda: "left off" in " ".join(source.problems()))
        (problem,) = source.problems()
    finally:
        source.close()
    assert problem == "it ended with exit code 3: the key [API_KEY] is wrong (it was started 4 times, and is left off)"


def test_a_program_that_is_not_there_is_not_tried_again(place: Place) -> None:
    found = place.found('[mcp.servers.gone]\ncommand = "no-such-program"\n')
    (source,) = found.sources
    try:
        assert source.listed() == ()
        assert "no-such-program was not found" in source.problems()[0]
        assert "was started" not in source.problems()[0]
    finally:
        source.close()


def test_a_whole_command_line_in_the_place_of_the_program_is_told_as_that(place: Place) -> None:
    (source,) = place.found('[mcp.servers.words]\ncommand = "python3 -m a_server"\n').sources
    try:
        assert source.listed() == ()
        assert "command is the program alone; its words are args" in source.problems()[0]
    finally:
        source.close()


def test_what_lies_outside_of_the_sandbox_is_told_with_what_shows_it(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "elsewhere" / "server.sh"
    script.parent.mkdir()
    script.write_text("exit 3\n")
    (source,) = place.found(f'[mcp.servers.away]\ncommand = "sh"\nargs = ["{script}"]\n').sources
    try:
        assert source.listed() == ()
        told = f'{script} is not in its sandbox; sandbox.toolchains = ["{script.parent}"] shows it'
        assert told in source.problems()[0]
    finally:
        source.close()


def test_one_that_ends_when_it_is_not_greeted_first_is_greeted_first(place: Place) -> None:
    with place.session(hostile("OldFashioned")) as rail:
        assert comes_true(lambda: "mcp__other__echo" in [spec.name for spec in rail.specs()])
        assert rail.call("mcp__other__echo", {"text": "hello"}).content == "hello"


def test_answers_to_what_nobody_asked_are_no_answers(place: Place) -> None:
    with place.session(hostile("WrongIds", SHORT)) as rail:
        result = rail.call("mcp__other__echo", {"text": "hello"})
    assert code_of(result) == "TIMEOUT"


@pytest.mark.parametrize("wrong", ["content", "nothing", "list", "null", "deep"])
def test_an_answer_that_is_none_fails_the_call_and_the_server_stays(place: Place, wrong: str) -> None:
    with place.session(hostile("Misspeaks", SHORT)) as rail:
        result = rail.call("mcp__other__echo", {"text": wrong})
        specs = [spec.name for spec in rail.specs()]
    assert code_of(result) in {"UNAVAILABLE", "TIMEOUT"}
    assert "mcp__other__echo" in specs


def test_an_error_of_the_server_is_told_in_its_words_cut_and_harmless(place: Place) -> None:
    with place.session(hostile("Misspeaks")) as rail:
        result = rail.call("mcp__other__echo", {"text": "error"})
    assert code_of(result) == "IO_ERROR"
    assert "The server other refused: it went wrong" in result.content
    assert "\x1b" not in result.content
    assert len(result.content) < 3_000


def test_a_result_that_is_too_large_for_a_message_fails_and_a_large_one_is_kept_aside(place: Place) -> None:
    with place.session(hostile("Huge")) as rail:
        large = rail.call("mcp__other__echo", {"text": "1000000"})
        too_large = rail.call("mcp__other__echo", {"text": "9000000"})
    assert code_of(large) is None
    assert large.meta.output is not None
    assert large.meta.characters == 1_000_000
    assert code_of(too_large) == "UNAVAILABLE"


def test_one_that_lies_about_its_results_is_found_out_quickly(place: Place) -> None:
    with place.session(hostile("Lies")) as rail:
        assert rail.call("mcp__other__count", {"text": "right"}).data == {"count": 3}
        wrong = rail.call("mcp__other__count", {"text": "wrong"})
        none = rail.call("mcp__other__count", {"text": "none"})
        slow = rail.call("mcp__other__slow", {"text": "slow"})
    assert code_of(wrong) == code_of(none) == "UNAVAILABLE"
    assert "does not match its own schema: count must be" in wrong.content
    assert "three" in wrong.content
    assert "it is missing" in none.content
    assert slow.duration_ms < 20_000


def test_ten_thousand_tools_are_a_few_and_a_word(place: Place) -> None:
    (source,) = place.found(hostile("ManyTools")).sources
    try:
        assert len(source.listed()) == 256
        assert "more than 256 tools" in source.problems()[0]
    finally:
        source.close()


def test_endless_pages_end(place: Place) -> None:
    (source,) = place.found(hostile("ManyPages")).sources
    try:
        assert 0 < len(source.listed()) <= 64
        assert "pages" in source.problems()[0]
    finally:
        source.close()


def test_a_name_counts_once_and_what_is_no_name_not_at_all(place: Place) -> None:
    (source,) = place.found(hostile("SameNames")).sources
    try:
        assert [tool.name for tool in source.listed()] == ["echo"]
        assert "it lists the tool 'echo' twice; the first counts" in source.problems()
        assert "\x07" not in "".join(source.problems())
    finally:
        source.close()


def test_one_that_changes_its_list_with_every_call_is_asked_now_and_then(place: Place) -> None:
    found = place.found(hostile("Changes"))
    (source,) = found.sources
    with place.opened(found) as rail:
        rail.specs()
        seen = [(time.monotonic(), source.revision)]
        for number in range(20):
            assert rail.call("mcp__other__echo", {"text": str(number)}).content == str(number)
            seen.append((time.monotonic(), source.revision))
        assert comes_true(lambda: "mcp__other__call_20" in [spec.name for spec in rail.specs()])
    for (began, before), (ended, after) in (*pairwise(seen), (seen[0], seen[-1])):
        assert after - before <= 1 + (ended - began) / supervisor._LISTING_PAUSE_SECONDS  # however long the calls took


def test_the_children_of_a_server_end_with_it(place: Place) -> None:
    begun, word = time.monotonic(), f"987.{os.getpid():08}"
    with place.session(hostile("StartsOthers")) as rail:
        assert rail.call("mcp__other__echo", {"text": word}).content == "started"
    assert not running(word)
    assert time.monotonic() - begun < 60


def running(word: str) -> bool:
    from pathlib import Path

    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"sleep\0{word}" in entry.read_text():
                return True
        except OSError:
            continue
    return False
