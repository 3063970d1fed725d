"""What is forgiven of how a text was sent, and the edits beside it that stay refused."""

import pytest

from handrail.edit.lines import apply_replacements
from handrail.edit.match import match_edit
from handrail.protocol.errors import ToolError

PAGE = """\
function page(items) {
    const names = items.map((item) => item.name);
    if (items.length < 2 && names[0] === "none") {
        return `<p>${names[0]}</p>\\n`;
    }
    return render(names, {
        wide: true,
        title: "Items",
    });
}
"""
NAMES = "    const names = items.map((item) => item.name);\n"
CHECK = '    if (items.length < 2 && names[0] === "none") {\n'
EMPTY = "        return `<p>${names[0]}</p>\\n`;\n"
WIDE = "        wide: true,\n"
TITLE = '        title: "Items",\n'
CLOSE = "    });\n"

# ruff: noqa: E501  a case is easier to read in one line than in several
FORGIVEN = {
    "code fences around both texts": ("code-fences", f"```js\n{NAMES}```", f"```js\n{NAMES.replace('name)', 'title)')}```\n", ("item.name)", "item.title)")),
    "tildes as code fences": ("code-fences", f"~~~\n{WIDE}~~~", "~~~\n        wide: false,\n~~~", ("wide: true", "wide: false")),
    "fences around lines that go": ("code-fences", f"```\n{WIDE}```", "```\n```", (WIDE, "")),
    "entities in both texts": ("escape-normalised", "items.length &lt; 2 &amp;&amp; names", "items.length &lt; 3 &amp;&amp; names", ("length < 2", "length < 3")),
    "entities for quotes too": ("escape-normalised", "&lt; 2 &amp;&amp; names[0] === &quot;none&quot;", "&lt; 2 &amp;&amp; names[0] === &quot;no&quot;", ('"none"', '"no"')),
    "fullwidth signs in both texts": ("typography", "render（names， {", "render（names， items， {", ("render(names, {", "render(names, items, {")),
    "fullwidth signs in oldText alone": ("typography", "render（names， {", "render(all(names), {", ("render(names,", "render(all(names),")),
    "a sign in full width that only newText has": ("typography", "items.map（（item）", "items.map（（item， n）", ("map((item)", "map((item, n)")),
    "accents that are encoded otherwise": ("typography", NAMES.replace("name)", "naïve)"), NAMES.replace("name)", "naïves)"), ("naïve", "naïves")),
    "doubled backslashes in oldText alone": ("escape-normalised", EMPTY.replace("\\", "\\\\"), EMPTY.replace("p>", "b>"), ("<p>${names[0]}</p>", "<b>${names[0]}</b>")),
    "an escaped dollar in oldText alone": ("escape-normalised", "<p>\\${names[0]}</p>", "<b>${names[0]}</b>", ("<p>${names[0]}</p>", "<b>${names[0]}</b>")),
    "other quotes on a line that stays": ("context-aware", f"{WIDE}        title: 'Items',\n", "        wide: false,\n        title: 'Items',\n", ("wide: true", "wide: false")),
    "a comma that a line that stays has lost": ("context-aware", f"{WIDE}        title: \"Items\"\n{CLOSE}", f"        wide: false,\n        title: \"Items\"\n{CLOSE}", ("wide: true", "wide: false")),
    "a comma that newText adds and the file has": ("context-aware", f"        title: \"Items\"\n{CLOSE}", f"{TITLE}        tall: true\n{CLOSE}", (TITLE, f"{TITLE}        tall: true\n")),
    "a flat block that changes line for line": ("line-trimmed", f"{CHECK}{EMPTY}    }}\n".replace("    ", ""), f"{CHECK}{EMPTY}    }}\n".replace("    ", "").replace("< 2", "< 3").replace("p>", "b>"), ("length < 2 && names[0] === \"none\") {\n        return `<p>${names[0]}</p>", "length < 3 && names[0] === \"none\") {\n        return `<b>${names[0]}</b>")),
    "a stale word that the file has elsewhere": ("context-aware", f"function page(item) {{\n{NAMES}{CHECK}{EMPTY}", f"function page(item) {{\n{NAMES}{CHECK}{EMPTY.replace('p>', 'b>')}", ("<p>${names[0]}</p>", "<b>${names[0]}</b>")),
    "a newer line far from the change": ("context-aware", f"{CHECK}{EMPTY}    }}\n    return render(names, {{\n{TITLE}{CLOSE}", f"{CHECK}{EMPTY}    }}\n    return render(names, {{\n{TITLE}{CLOSE}".replace("< 2", "< 3"), ("< 2", "< 3")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGIVEN)
def test_what_is_meant_is_changed_and_nothing_else(name: str) -> None:
    strategy, old, new, (before, after) = FORGIVEN[name]
    text = PAGE.replace("item.name", "item.na\u00efve") if "accents" in name else PAGE
    if "accents" in name:
        old, new = old.replace("ï", "i\u0308"), new.replace("ï", "i\u0308")
    assert text.count(before) == 1
    placed = match_edit(text, old, new, "page.js")
    assert apply_replacements(text, placed.replacements) == text.replace(before, after)
    assert placed.strategy == strategy


REFUSED = {
    "fences around oldText alone": (PAGE, f"```\n{WIDE}```", "        wide: false,\n"),
    "fences in a file that has some": (f"{PAGE}/*\n```\n*/\n", f"```\n{WIDE}```", "```\n        wide: false,\n```"),
    "fences within fences": (PAGE, f"```\n{WIDE}```\n{TITLE}```", f"```\n{WIDE}```\n```"),
    "entities in a part of the texts": (PAGE, "items.length &lt; 2 && names", "items.length &lt; 3 && names"),
    "entities in oldText alone": (PAGE, "items.length &lt; 2 &amp;&amp; names", "items.length < 3 && names"),
    "an entity that the text has itself": ("say('&lt;' + a < b)\n", "say('&lt;' + a &lt; b)", "say('&lt;' + a &lt; c)"),
    "fullwidth and plain signs that the file has both": ("f(a，b, c)\nend\n", "f（a，b， c）\nend", "f（a，b， c， d）\nend"),
    "backslashes of which some are doubled": (PAGE, EMPTY.replace("\\", "\\\\").replace("<p", "\\<p"), EMPTY.replace("p>", "b>")),
    "doubled backslashes that newText has in part": ("a = '\\n\\t'\n", "a = '\\\\n\\\\t'", "a = '\\\\n\\t'\nb = '\\n'"),
    "other quotes on a line that changes": (PAGE, f"{WIDE}        title: 'Items',\n", f"{WIDE}        title: 'All',\n"),
    "other quotes on a line that moves": (PAGE, f"{CHECK}{EMPTY}    }}\n".replace('"', "'"), f"{EMPTY}    }}\n{CHECK}".replace('"', "'")),
    "other quotes in two places": (PAGE + PAGE, f"{WIDE}        title: 'Items',\n", "        wide: false,\n        title: 'Items',\n"),
    "quotes that say something else": ("a = \"it's\"\nb = 1\n", "a = 'its'\nb = 1", "a = 'its'\nb = 2"),
    "a lost comma within a line": (PAGE, "    return render(names {\n        wide: true,\n", "    return render(names {\n        wide: false,\n"),
    "a lost comma on a line that changes": (PAGE, f"{WIDE}        title: \"Items\"\n{CLOSE}", f"{WIDE}        title: \"All\"\n{CLOSE}"),
    "a flat block with a new line": (PAGE, f"{NAMES}{CHECK}{EMPTY}    }}\n".replace("    ", ""), f"{NAMES}{CHECK}log();\n{EMPTY}    }}\n".replace("    ", "")),
    "a flat block whose line begins a block now": (PAGE, f"{NAMES}{CHECK}{EMPTY}    }}\n".replace("    ", ""), f"{NAMES}{CHECK}{EMPTY}    }}\n".replace("    ", "").replace("`;", "` + {")),
    "a flat block whose line is another one": (PAGE, f"{NAMES}{CHECK}{EMPTY}    }}\n".replace("    ", ""), f"{NAMES}{CHECK}".replace("    ", "") + "throw problem\n}\n"),
    "a stale word beside the change": (PAGE, f"function page(item) {{\n{NAMES}{CHECK}{EMPTY}", f"function page(item) {{\n{NAMES.replace('name)', 'title)')}{CHECK}{EMPTY}"),
    "a stale word on a line that changes": (PAGE, f"function page(item) {{\n{NAMES}{CHECK}{EMPTY}", f"function page(item, n) {{\n{NAMES}{CHECK}{EMPTY}"),
    "another word": (PAGE, f"function page(lines) {{\n{NAMES}{CHECK}{EMPTY}", f"function page(lines) {{\n{NAMES}{CHECK}{EMPTY.replace('p>', 'b>')}"),
    "another function": (PAGE, f"function pages(items) {{\n{NAMES}{CHECK}{EMPTY}", f"function pages(items) {{\n{NAMES}{CHECK}{EMPTY.replace('p>', 'b>')}"),
    "a stale line that is elsewhere": (f"{PAGE}function page(item) {{\n", f"function page(item) {{\n{NAMES}{CHECK}{EMPTY}", f"function page(item) {{\n{NAMES}{CHECK}{EMPTY.replace('p>', 'b>')}"),
    "a newer line beside the change": (PAGE, f"{CHECK}{EMPTY}    }}\n    return render(names, {{\n{TITLE}{CLOSE}", f"{CHECK}{EMPTY}    }}\n    return render(names, {{\n{TITLE.replace('I', 'i')}{CLOSE}"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_a_wrong_guess_is_refused(name: str) -> None:
    text, old, new = REFUSED[name]
    with pytest.raises(ToolError) as caught:
        match_edit(text, old, new, "page.js")
    assert caught.value.code in {"NO_MATCH", "AMBIGUOUS_MATCH"}


def test_a_stale_word_is_forgiven_only_where_nothing_else_comes_near() -> None:
    old = f"function page(item) {{\n{NAMES}{CHECK}{EMPTY}"
    twin = PAGE.replace("page(items)", "page(itemss)")
    with pytest.raises(ToolError):
        match_edit(PAGE + twin, old, old.replace("p>", "b>"), "page.js")


@pytest.mark.parametrize("slip", ["use  b;", "use b ;", "use\u00a0b;"])
def test_a_line_that_moves_stays_as_the_file_has_it(slip: str) -> None:
    placed = match_edit("use a;\nuse c;\nuse b;\n", f"use a;\nuse c;\n{slip}\n", f"use a;\n{slip}\nuse c;\n", "a.rs")
    assert apply_replacements("use a;\nuse c;\nuse b;\n", placed.replacements) == "use a;\nuse b;\nuse c;\n"


def test_a_second_copy_of_a_line_is_new_texts() -> None:
    text = "say(“a”);\nrun();\n"
    placed = match_edit(text, 'say("a");\nrun();\n', 'say("a");\nrun();\nsay("a");\n', "a.js")
    assert apply_replacements(text, placed.replacements) == 'say(“a”);\nrun();\nsay("a");\n'
