"""Words in the place of a record's name that say there is none, or that were never filled in.

What belongs here: telling `None at this time` and `Link to ADR` from the title of a record.
"""

from __future__ import annotations

import re
from typing import Final

from concordance.text.record_words import NOTHING, PLACEHOLDERS, UNFILLED

# So a title may begin, too: `No magic strings`, `Current users first`.
_NO: Final = (
    r"no (?:(?:other|newer|later|such|known|one)\s+)?"
    r"(?:adrs?|records?|decisions?|documents?|successors?|replacements?|one(?!-))"
)
_IN_FORCE: Final = r"(?:in (?:force|use|effect)|valid|active|current|accepted|applicable|standing)"
_AT_PRESENT: Final = (
    r"(?:(?:currently|presently|so far|as yet|yet|as of now|at present|still|up to now)\W+)"
)
_ABSENT: Final = re.compile(
    rf"{_AT_PRESENT}?(?:none|nothing|nobody|nope|null|n/a|n\.\s?a|not|{_NO})\b.*"
    # So says the newer record of an older one.
    rf"|{_AT_PRESENT}{_IN_FORCE}|(?:this|the present) (?:one|adr|record|decision|document)",
    re.IGNORECASE | re.DOTALL,
)
_NUMBERLESS: Final = re.compile(
    r"(?:adr|madr|decision)?[-_ #]*(?:n{3,8}|x{2,8})(?![^\W_]).*", re.IGNORECASE | re.DOTALL
)


def names_nothing(text: str) -> bool:
    """Whether a text in the place of a record's name or title says that there is none."""
    bare = re.sub(r"^[\W_]+|[\W_]+$", "", text).casefold()
    if bare in NOTHING or _ABSENT.fullmatch(bare) or _NUMBERLESS.fullmatch(bare):
        return True
    words = set(re.findall(r"[^\W_]+", bare))
    return words <= PLACEHOLDERS and (not words or bool(words & UNFILLED))
