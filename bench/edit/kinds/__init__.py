"""The kinds of cases: each takes a hunk and makes a draft of it, or raises UnfitError.

The names of those that must be refused begin with `neg_`.
"""

import random
from collections.abc import Callable, Mapping

from bench.edit.hunk import Draft, Hunk
from bench.edit.kinds.absent import already_applied, already_applied_space, nowhere, other_definition, other_line
from bench.edit.kinds.blank_lines import dropped_blank, extra_blank
from bench.edit.kinds.characters import lookalike_in_file, lookalike_in_old, smart_quotes, smart_quotes_in_both
from bench.edit.kinds.combined import (
    dedented_trailing,
    dedented_without_blank,
    escaped_and_dedented,
    numbers_and_crlf,
    numbers_and_trailing,
    shifted_in_crlf,
    tabs_and_quotes,
)
from bench.edit.kinds.depths import two_depths, wrapped, wrapped_elsewhere, wrong_old_depth
from bench.edit.kinds.elisions import ambiguous_tail, elided_middle, omitted_in_new
from bench.edit.kinds.encodings import byte_order_mark, latin_1, stray_byte, utf_16
from bench.edit.kinds.escapes import doubled_backslashes, escaped_as_json, escaped_newlines, escaped_quotes
from bench.edit.kinds.every_place import every_exact, every_some_space, every_space
from bench.edit.kinds.line_endings import crlf_file, crlf_in_old, mixed_endings, no_final_newline
from bench.edit.kinds.listings import line_numbers
from bench.edit.kinds.plain import exact, verbatim, verbatim_after_slip
from bench.edit.kinds.several_places import several, several_but_for_space, several_indentations
from bench.edit.kinds.slipped import (
    entities,
    escaped_old,
    fences,
    flattened,
    flattened_and_longer,
    fullwidth,
    lost_comma,
    meant,
    odd_spaces,
    other_quotes,
    refused,
)
from bench.edit.kinds.staleness import newer_file, one_token, stale_context, stale_sibling
from bench.edit.kinds.twins import near_twin_exact, near_twin_space, neither_twin
from bench.edit.kinds.white_space import (
    first_line_indent,
    inner_space,
    last_line_indent,
    other_indentation,
    part_of_a_line,
    tabs_for_spaces,
    trailing_space,
)

Kind = Callable[[Hunk, random.Random], Draft]

KINDS: Mapping[str, Kind] = {
    "exact": exact,
    "verbatim": verbatim,
    "verbatim_after_slip": verbatim_after_slip,
    "trailing_space": trailing_space,
    "tabs_for_spaces": tabs_for_spaces,
    "other_indentation": other_indentation,
    "wrong_old_depth": wrong_old_depth,
    "wrapped": wrapped,
    "wrapped_elsewhere": wrapped_elsewhere,
    "first_line_indent": first_line_indent,
    "last_line_indent": last_line_indent,
    "inner_space": inner_space,
    "part_of_a_line": part_of_a_line,
    "dropped_blank": dropped_blank,
    "extra_blank": extra_blank,
    "escaped_newlines": escaped_newlines,
    "escaped_quotes": escaped_quotes,
    "escaped_as_json": escaped_as_json,
    "doubled_backslashes": doubled_backslashes,
    "smart_quotes": smart_quotes,
    "smart_quotes_in_both": smart_quotes_in_both,
    "lookalike_in_old": lookalike_in_old,
    "lookalike_in_file": lookalike_in_file,
    "crlf_in_old": crlf_in_old,
    "crlf_file": crlf_file,
    "mixed_endings": mixed_endings,
    "no_final_newline": no_final_newline,
    "byte_order_mark": byte_order_mark,
    "utf_16": utf_16,
    "latin_1": latin_1,
    "stray_byte": stray_byte,
    "line_numbers": line_numbers,
    "elided_middle": elided_middle,
    "one_token": one_token,
    "stale_context": stale_context,
    "newer_file": newer_file,
    "near_twin_exact": near_twin_exact,
    "near_twin_space": near_twin_space,
    "every_exact": every_exact,
    "every_space": every_space,
    "every_some_space": every_some_space,
    "dedented_trailing": dedented_trailing,
    "dedented_without_blank": dedented_without_blank,
    "escaped_and_dedented": escaped_and_dedented,
    "numbers_and_crlf": numbers_and_crlf,
    "numbers_and_trailing": numbers_and_trailing,
    "shifted_in_crlf": shifted_in_crlf,
    "tabs_and_quotes": tabs_and_quotes,
    "odd_spaces": meant(odd_spaces),
    "fullwidth": meant(fullwidth),
    "fenced": meant(fences),
    "entities": meant(entities),
    "escaped_old": meant(escaped_old),
    "flattened": meant(flattened),
    "other_quotes": meant(other_quotes),
    "lost_comma": meant(lost_comma),
    "neg_odd_spaces": refused(odd_spaces),
    "neg_fullwidth": refused(fullwidth),
    "neg_fenced": refused(fences),
    "neg_entities": refused(entities),
    "neg_escaped_old": refused(escaped_old),
    "neg_flattened": refused(flattened),
    "neg_flattened_and_longer": flattened_and_longer,
    "neg_other_quotes": refused(other_quotes),
    "neg_lost_comma": refused(lost_comma),
    "neg_stale_sibling": stale_sibling,
    "neg_two_depths": two_depths,
    "neg_several": several,
    "neg_several_but_for_space": several_but_for_space,
    "neg_several_indentations": several_indentations,
    "neg_ambiguous_tail": ambiguous_tail,
    "neg_omitted_in_new": omitted_in_new,
    "neg_neither_twin": neither_twin,
    "neg_nowhere": nowhere,
    "neg_other_definition": other_definition,
    "neg_other_line": other_line,
    "neg_already_applied": already_applied,
    "neg_already_applied_space": already_applied_space,
}
