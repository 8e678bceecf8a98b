"""Which language a text is in, as the name of a Postgres text-search configuration.

What belongs here: detection by py3langid, a maintained fork of langid.py with its model inside
(Lui and Baldwin 2012, "langid.py: An off-the-shelf language identification tool"). Where it is not
sure, or Postgres has no stemmer for the language, the answer is `simple`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier  # type: ignore[import-untyped]

AUTO = "auto"
FALLBACK = "simple"
# More tells nothing new, and takes longer.
LOOKED_AT = 2_000
# Measured on 20,000 German and English texts of up to 500 characters: at this probability one in a
# thousand was taken for another language that has a stemmer, at most and at any length; below this
# length most stay unrecognised.
LEAST_CHARACTERS = 20
LEAST_PROBABILITY = 0.5
DETECTION_VERSION = 2
"""Raised whenever the same text may be taken for another language than before."""

CONFIGURATIONS = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}


def language_of(text: str, configured: str, known: Collection[str]) -> str:
    """The configuration to analyse a text with: the project's own, or with `auto` a detected one.

    Args:
        text: The text of one document or session.
        configured: What the project is set to.
        known: The configurations that the server has.
    """
    if configured != AUTO:
        return configured
    looked_at = text[:LOOKED_AT]
    if len(looked_at.strip()) < LEAST_CHARACTERS:
        return FALLBACK
    code, probability = _identifier().classify(looked_at)
    found = CONFIGURATIONS.get(code, FALLBACK)
    return found if probability >= LEAST_PROBABILITY and found in known else FALLBACK


@cache
def _identifier() -> LanguageIdentifier:
    """The detector, loaded once: its model takes half a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 - slow to load

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
