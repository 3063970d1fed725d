"""todo: a whole list in the place of the last one."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.protocol.records import TodoItem
from handrail.settings import Settings
from handrail.settings.model import Tools

ON = Settings(tools=Tools(enable=("todo", "display")))


def items(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"items": [{"text": text, "status": status} for text, status in pairs]}


def test_the_list_is_what_the_last_call_said_also_for_who_comes_later(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, session="s")
    assert one.todo() == ()
    one.call("todo", items(("look", "active"), ("mend", "pending")))
    result = one.call("todo", items(("look", "done"), ("mend", "active"), ("test", "pending")))
    assert result.content == "1 of 3 done. Now: mend\n"
    assert [item.text for item in result.data.items] == ["look", "mend", "test"]
    assert one.todo() == result.data.items
    one.close()
    assert rail(settings=ON, session="s").todo() == result.data.items


def test_an_empty_list_clears_it(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.call("todo", items(("look", "active")))
    assert one.call("todo", {"items": []}).content == "The list is empty.\n"
    assert one.todo() == ()


def test_a_list_that_is_refused_leaves_the_last_one(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.call("todo", items(("look", "active")))
    for wrong in ({}, items(("", "done")), items(("x", "begun")), items(*[("x", "done")] * 101), {"items": ["x"]}):
        result = one.call("todo", wrong)
        assert result.error is not None
        assert result.error.code == "INVALID_ARGUMENT"
    assert one.todo() == (TodoItem(text="look", status="active"),)


def test_several_active_items_are_taken_with_a_word_about_it(rail: Callable[..., Handrail]) -> None:
    result = rail(settings=ON).call("todo", items(("a", "active"), ("b", "active")))
    assert result.ok
    assert "2 items are active" in result.warnings[0]


def test_what_only_looks_like_a_list_in_another_call_is_none(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)
    one.call("todo", items(("real", "active")))
    one.call("display", {"content": '"tool_call_name":"todo"', "title": '"tool_call_name":"todo"'})
    one.call("find", {"pattern": '"tool_call_name":"todo"'})
    assert one.todo() == (TodoItem(text="real", status="active"),)


@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "full"])
@pytest.mark.parametrize(
    "more", [{}, {"unattended": True}, {"settings": Settings(tools=ON.tools, profile="restricted")}]
)
def test_nobody_has_to_confirm_it_wherever_it_is(rail: Callable[..., Handrail], mode: str, more: Any) -> None:
    assert rail(**{"settings": ON, "mode": mode, **more}).call("todo", {"items": []}).ok


_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=500)


def test_every_list_comes_back_as_it_was_given(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON)

    @given(st.lists(st.tuples(_TEXT, st.sampled_from(["pending", "active", "done"])), max_size=8))
    def comes_back(listed: list[tuple[str, Any]]) -> None:
        assert one.call("todo", items(*listed)).ok
        assert one.todo() == tuple(TodoItem(text=text, status=status) for text, status in listed)

    comes_back()
