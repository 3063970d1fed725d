"""The grammar of placeholders: words, in lower case with single spaces, that say that something was left out."""

import re
from functools import cache

_THE = r"(?:(?:the|this|that|these|those|all|any|your|my|our|its|and|with|plus|of) )*"
_NAME = r"(?: [\w.$/@#+]+)"
_PROGRAMMING = (
    r"code|implementations?|logic|lines|methods|functions|imports|body|bodies|class(?:es)?|components?|tests|cases|styles"
    r"|rules|routes|handlers|definitions|declarations|statements|setup|sections?|markup|html|jsx"
)
"""What only somebody who edits speaks of."""
_CODE = (
    rf"(?:{_PROGRAMMING}|contents?|lines?|methods?|functions?|imports?|file|modules?|script|document|program|tests?|fields?"
    r"|properties|props|cases?|definitions?|rules?|routes?|handlers?|entries|items|config|configuration|text|parts?|block"
    r"|loop|struct|enum|interface|types?|variables?|constants?|template|schema|table|list|array|object|dict)"
)
_PROGRAM = rf"(?:{_PROGRAMMING}|contents? from)"
_SAME = (
    r"(?:(?:exactly )?(?:the )?(?:exact )?same|unchanged|unmodified|unaltered|untouched|intact|as is|as it (?:is|was)"
    r"|as they (?:are|were)|as (?:before|above|previously)|omitted|elided|truncated|abbreviated|snipped|not shown"
    r"|(?:with )?no changes?|not changed)"
)
_STAYS = (
    r"(?:(?:that|which|remains?|stays?|is|are|was|were|be|will|should|must|has|have|been|left|kept|still|all"
    rf"|exactly|completely|entirely|otherwise|here) )*{_SAME}"
)
_TAIL = (
    r"(?: (?:as|from|like|in|of|for|above|below|here|before|previously|originally|original|the|brevity|clarity|code"
    r"|file|version|previous|earlier|existing|implementation|simplicity|space|needed|required|now|continues?))*"
)
_VERB = r"(?:(?:keep|insert|include|add|copy|paste|then) )?"
_REST = r"(?:rest|remainder)"
_KEPT = r"(?:existing|unchanged|unmodified|remaining|previous|original|same|omitted|earlier|prior|surrounding)"
_FORMER = rf"(?:existing|{_REST}|remaining|other|same|original|previous)"
_SENTENCES = "|".join(
    (
        rf"{_THE}{_REST}(?: of)?{_NAME}{{0,5}} {_STAYS}{_TAIL}",
        rf"{_THE}(?:{_KEPT}|other|more|\d+){_NAME}{{0,2}} {_PROGRAM}{_NAME}{{0,4}} {_STAYS}{_TAIL}",
        rf"{_THE}(?:everything|all)(?: else| other| above| below| before| after)+{_NAME}{{0,2}} {_STAYS}{_TAIL}",
        rf"{_THE}{_PROGRAM}(?: above| below| before| after| here)? {_STAYS}{_TAIL}",
        rf"{_THE}(?:existing|unchanged|previous|remaining)(?: {_CODE})?"
        r" (?:code|implementation|contents?|logic)(?: (?:goes|stays|continues|here|below|above|follows))*",
        rf"{_THE}{_REST} of {_THE}(?:[\w.]+ ){{0,2}}(?:{_PROGRAM}|page|page contents?)"
        r"(?: (?:goes|stays|continues|here|below|above))*",
        rf"{_THE}(?:other|more|additional){_NAME}{{0,2}} {_PROGRAM}(?: (?:go|stay|continue|remain|are))? here",
        rf"keep {_THE}{_FORMER}(?: of)? ?{_THE}(?:{_PROGRAM}{_TAIL}|{_CODE} {_STAYS}{_TAIL})",
        rf"lines? \d+(?: (?:to|through))? \d+(?: (?:and \d+ \d+|of {_CODE}))?(?: {_STAYS}{_TAIL})?",
        r"unchanged(?: code)?(?: here| below| above| from .{1,40})?",
        r"no (?:further |other )?changes?(?: around| needed| required)* (?:here|below|above|from here)",
        rf"(?:the )?same (?:{_CODE} )?as (?:before|previously|(?:the )?(?:original|previous)(?: {_CODE})?)",
        r"(?:omitted|elided|truncated|snipped|abbreviated|shortened) for (?:brevity|clarity|simplicity|space)",
        r"snip",
    )
)
"""What says so without dots."""
_IN_DOTS = "|".join(
    (
        rf"{_VERB}{_THE}{_REST}(?: of{_NAME}{{1,5}})?",
        rf"{_VERB}{_THE}{_KEPT}(?: {_CODE}|{_NAME} {_CODE}){_NAME}{{0,3}}",
        rf"{_THE}(?:code|lines?|methods?) (?:continues?|goes here|here)",
        rf"(?:{_THE}{_CODE} )?{_SAME}{_TAIL}",
        r"snip|skip|skipped|cut|trimmed|truncated|omitted|elided|hidden|(?:\d+|many|more) (?:more )?lines?",
    )
)
"""What says so between dots or in brackets."""
_BEHIND_DOTS = rf"{_VERB}{_THE}{_KEPT}{_NAME}{{0,4}}"
_LIKELY_BEHIND_DOTS = rf"(?:and )?(?:so on|so forth|etc|more)|{_THE}(?:other|more|additional){_NAME}{{1,3}}"
_LIKELY_WITH_DOTS = rf"{_THE}(?:other|more|additional){_NAME}{{0,1}} (?:{_PROGRAMMING})"
_MAX_WORDS_BETWEEN_DOTS = 8
"""Words between dots that may be any."""


def is_certain_wording(words: str, *, dotted: bool, behind_dots: bool) -> bool:
    """Whether the words say so; dots or brackets around them make fewer words enough."""
    if _match(_SENTENCES, words):
        return True
    return dotted and (_match(_IN_DOTS, words) or (behind_dots and _match(_BEHIND_DOTS, words)))


def is_likely_wording(words: str, *, behind_dots: bool, before_dots: bool) -> bool:
    """Whether words with dots stand for something else: few between dots, or some that always do."""
    if not behind_dots:
        return before_dots and _match(_LIKELY_WITH_DOTS, words)
    return (before_dots and words.count(" ") < _MAX_WORDS_BETWEEN_DOTS) or _match(_LIKELY_BEHIND_DOTS, words)


def _match(grammar: str, words: str) -> bool:
    return _compiled(grammar).fullmatch(words) is not None


@cache
def _compiled(grammar: str) -> re.Pattern[str]:
    """When it is first needed: it takes 20 ms."""
    return re.compile(grammar)
