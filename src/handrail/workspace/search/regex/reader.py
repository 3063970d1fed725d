"""The expression's characters one after the other, and the escapes that are the same in and outside of sets."""

from handrail.workspace.search.regex import characters
from handrail.workspace.search.regex.characters import Test

_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}
_SETS: dict[str, Test] = {"d": characters.is_digit, "s": characters.is_space, "w": characters.is_word}
_HEX = frozenset("0123456789abcdefABCDEF")
_LENGTHS = {"x": 2, "u": 4, "U": 8}


class PatternSyntaxError(Exception):
    """Rust refuses the expression too: what is wrong, and at which of its characters."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.reason, self.place = reason, place


class UnsupportedPatternError(Exception):
    """Rust may know what it means, we do not: which construct it is."""


class LineBreakError(Exception):
    """The expression can only match what ends a line."""


class Reader:
    """Where reading has come to."""

    def __init__(self, text: str, shift: int) -> None:
        self._text = text
        self._shift = shift
        self._at = 0
        self.asks_tables = False
        """Whether something was read that only tables of Unicode decide."""
        self._sets: dict[tuple[str, bool], Test] = {}

    @property
    def place(self) -> int:
        """The number of the next character, from 1."""
        return self._at - self._shift + 1

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self._at >= len(self._text)

    def peek(self, further: int = 0) -> str:
        """The next character, or one further on; empty at the end."""
        return self._text[self._at + further : self._at + further + 1]

    def next(self) -> str:
        """The next character."""
        if self.ended:
            raise PatternSyntaxError("it ends too early", self.place)
        self._at += 1
        return self._text[self._at - 1]

    def takes(self, mark: str) -> bool:
        """Goes on behind a mark, if it comes next."""
        found = self._text.startswith(mark, self._at)
        self._at += len(mark) if found else 0
        return found

    def skip(self, count: int) -> None:
        """Goes on by so many characters."""
        self._at += count

    def ahead(self, start: str, end: str) -> str | None:
        """What stands between two marks, if the first comes next."""
        if not self._text.startswith(start, self._at):
            return None
        close = self._text.find(end, self._at + len(start))
        return self._text[self._at + len(start) : close] if close >= 0 else None

    def since(self, place: int) -> str:
        """What was read from a place on."""
        return self._text[place + self._shift - 1 : self._at]

    def shared(self, words: str, any_case: bool, test: Test) -> Test:
        """A set, or the one that was read before in the same words: its members are looked for only once."""
        return self._sets.setdefault((words, any_case), test)

    def spaces(self) -> None:
        """Goes on behind spaces."""
        while self.peek().isspace():
            self._at += 1

    def number(self) -> int:
        """A decimal number, with spaces around it."""
        self.spaces()
        digits = ""
        while self.peek().isascii() and self.peek().isdigit():
            digits += self.next()
        self.spaces()
        if not digits or len(digits) > 9:
            raise PatternSyntaxError("a repetition { needs a number", self.place)
        return int(digits)

    def group_name(self) -> None:
        """A group's name and the `>` behind it."""
        start, name = self.place, ""
        while (character := self.next()) != ">":
            name += character
        if not name:
            raise PatternSyntaxError("a group's name is empty", start)
        if not name.isascii() or name[0].isdigit() or not all(c.isalnum() or c in "_.[]" for c in name):
            raise PatternSyntaxError("a group's name is not valid", start)
        self._named(name, start)

    def _named(self, name: str, start: int) -> None:
        if self._text.count(f"<{name}>", 0, self._at) > 1:
            raise PatternSyntaxError("two groups have one name", start)

    def escape(self, *, any_case: bool) -> str | Test:
        """What a backslash and the characters behind it mean: one character, or a set."""
        start = self.place - 1
        letter = self.next()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in _LENGTHS:
            return self._code(_LENGTHS[letter])
        if letter.lower() in _SETS:
            self.asks_tables |= letter not in "sS"
            test = _SETS[letter.lower()]
            return test if letter.islower() else characters.negate(test)
        if letter in "pP":
            return self._property(any_case=any_case, negated=letter == "P")
        if letter.isdigit():
            raise PatternSyntaxError("back-references are not supported", start)
        if not letter.isascii() or letter.isalnum() or letter in "<>":
            raise PatternSyntaxError(f"\\{letter} is no escape", start)
        return letter

    def _code(self, length: int) -> str:
        start = self.place
        if self.takes("{"):
            digits = ""
            while (digit := self.next()) != "}":
                digits += digit
        else:
            digits = "".join(self.next() for _ in range(length))
        if not digits or set(digits) - _HEX:
            raise PatternSyntaxError("a character's number has to be hexadecimal", start)
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise PatternSyntaxError("there is no character of that number", start)
        return chr(code)

    def _property(self, *, any_case: bool, negated: bool) -> Test:
        name = self.ahead("{", "}")
        self.skip(1 if name is None else len(name) + 2)
        test = characters.find_category(self._text[self._at - 1] if name is None else name)
        if test is None:
            raise UnsupportedPatternError("\\p with this property")
        self.asks_tables = True
        test = characters.ignore_case(test) if any_case else test
        return characters.negate(test) if negated else test
