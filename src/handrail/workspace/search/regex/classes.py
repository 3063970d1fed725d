"""Sets of characters in brackets, with sets inside and what is done between them."""

from handrail.workspace.search.regex import characters
from handrail.workspace.search.regex.characters import Test
from handrail.workspace.search.regex.reader import LineBreakError, PatternSyntaxError, Reader, UnsupportedPatternError

_OPERATIONS = ("&&", "--", "~~")
_MAX_LEVELS = 50


def read_class(reader: Reader, *, any_case: bool) -> Test:
    """The set whose opening bracket was just read."""
    test = _class(reader, any_case, 0)
    if (test("\n") or test("\r")) and not any(test(chr(code)) for code in range(0x3100) if chr(code) not in "\r\n"):
        raise LineBreakError
    return test


def _class(reader: Reader, any_case: bool, depth: int) -> Test:
    start = reader.place - 1
    if depth > _MAX_LEVELS:
        raise UnsupportedPatternError("so many sets inside each other")
    negated = reader.takes("^")
    items: list[Test] = []
    while reader.takes("-"):
        items.append(_one("-"))
    if not items and reader.takes("]"):
        items.append(_one("]"))
    test = _operations(reader, items, any_case, depth, start)
    return characters.negate(test) if negated else test


def _operations(reader: Reader, items: list[Test], any_case: bool, depth: int, start: int) -> Test:
    """Unions and what stands between them, from left to right."""
    left: Test | None = None
    operation = ""
    while True:
        if reader.ended:
            raise PatternSyntaxError("a [ is not closed by a ]", start)
        found = next((mark for mark in _OPERATIONS if reader.takes(mark)), None)
        if found is None and not reader.takes("]"):
            items.append(_item(reader, any_case, depth, start))
            continue
        right = characters.join_tests(items)
        right = characters.ignore_case(right) if any_case else right
        left = right if left is None else _combined(operation, left, right)
        if found is None:
            return left
        operation, items = found, []


def _combined(operation: str, left: Test, right: Test) -> Test:
    if operation == "&&":
        return lambda character: left(character) and right(character)
    if operation == "--":
        return lambda character: left(character) and not right(character)
    return lambda character: left(character) != right(character)


def _item(reader: Reader, any_case: bool, depth: int, start: int) -> Test:
    if reader.takes("["):
        return _posix(reader, any_case) or _class(reader, any_case, depth + 1)
    first = _single(reader, any_case)
    if reader.ended:
        raise PatternSyntaxError("a [ is not closed by a ]", start)
    if reader.peek() != "-" or reader.peek(1) in {"]", "-"}:
        return _one(first) if isinstance(first, str) else first
    reader.skip(1)
    last = _single(reader, any_case)
    if not isinstance(first, str) or not isinstance(last, str):
        raise PatternSyntaxError("a range in [ ] needs a character at either end", reader.place)
    if last < first:
        raise PatternSyntaxError("a range in [ ] is the wrong way round", reader.place)
    return characters.build_range(first, last)


def _single(reader: Reader, any_case: bool) -> str | Test:
    character = reader.next()
    if character != "\\":
        reader.asks_tables |= any_case and not character.isascii()
        return character
    if reader.peek() in {"b", "B", "A", "z", "<", ">"}:
        raise PatternSyntaxError("a place between characters cannot stand in [ ]", reader.place)
    found = reader.escape(any_case=any_case)
    reader.asks_tables |= any_case and isinstance(found, str) and not found.isascii()
    return found


def _posix(reader: Reader, any_case: bool) -> Test | None:
    """`[:alpha:]`; without a name that is known it is a set inside the set."""
    name = reader.ahead(":", ":]")
    test = characters.find_posix_class((name or "").removeprefix("^"))
    if name is None or test is None:
        return None
    reader.skip(len(name) + 3)
    test = characters.ignore_case(test) if any_case else test
    return characters.negate(test) if name.startswith("^") else test


def _one(character: str) -> Test:
    return frozenset(character).__contains__
