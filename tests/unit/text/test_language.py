"""Telling a text's language, and falling back where it can't be told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concordance.text import language as languages
from concordance.text.language import (
    AUTO,
    CONFIGURATIONS,
    FALLBACK,
    LEAST_CHARACTERS,
    LOOKED_AT,
    language_of,
)

KNOWN = frozenset({*CONFIGURATIONS.values(), FALLBACK})
TEXTS = {
    "english": "The queue keeps the orders until a worker takes them, so that no order is lost.",
    "german": "Die Warteschlange behält die Bestellungen, bis ein Arbeiter sie abholt.",
    "french": "La file d'attente garde les commandes jusqu'à ce qu'un ouvrier vienne les prendre.",
    "spanish": "La cola guarda los pedidos hasta que un trabajador los recoge, y nada se pierde.",
    "portuguese": "A fila guarda as encomendas até que um trabalhador as venha buscar.",
    "russian": "Очередь хранит заказы до тех пор, пока работник их не заберёт.",
    "dutch": "De wachtrij bewaart de bestellingen totdat een medewerker ze ophaalt en afhandelt.",
}


@pytest.mark.parametrize(("name", "text"), TEXTS.items(), ids=list(TEXTS))
def test_a_language_is_told(name: str, text: str) -> None:
    assert language_of(text, AUTO, KNOWN) == name


@pytest.mark.parametrize(("name", "text"), TEXTS.items(), ids=list(TEXTS))
def test_what_a_project_says_is_not_doubted(name: str, text: str) -> None:
    assert language_of(text, "swedish", KNOWN) == "swedish"
    assert language_of("", name, frozenset()) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        " " * 100 + "\n",
        "The queue",
        "復旧手順はこちら。キューが止まったときは、まずワーカーを再起動してください。それでも直らないときは連絡を。",
        "当队列停止时,请先重新启动工作进程。如果仍然没有恢复,请联系值班人员,并附上日志,谢谢大家的理解与配合。",
        "큐가 멈추면 먼저 작업자를 다시 시작하십시오. 그래도 안 되면 담당자에게 연락하십시오.",
        "0" * 200,
    ],
    ids=["empty", "blank", "short", "japanese", "chinese", "korean", "digits"],
)
def test_what_can_not_be_told_or_has_no_stemmer_is_simple(text: str) -> None:
    assert language_of(text, AUTO, KNOWN) == FALLBACK


def test_a_server_without_the_configuration_gets_the_simple_one() -> None:
    assert language_of(TEXTS["german"], AUTO, KNOWN - {"german"}) == FALLBACK
    assert language_of(TEXTS["german"], AUTO, frozenset()) == FALLBACK


def test_blanks_do_not_make_a_text_long_enough() -> None:
    text = "Der Tee ist gut"
    assert len(text) < LEAST_CHARACTERS
    assert language_of(text + " " * LEAST_CHARACTERS, AUTO, KNOWN) == FALLBACK


def test_an_unsure_guess_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Guess:
        def __init__(self, probability: float) -> None:
            self.probability = probability

        def classify(self, text: str) -> tuple[str, float]:
            assert len(text) <= LOOKED_AT
            return "de", self.probability

    for probability, wanted in ((0.91, "german"), (0.5, "german"), (0.49, FALLBACK)):
        monkeypatch.setattr(languages, "_identifier", lambda p=probability: Guess(p))
        assert language_of("x" * 5_000, AUTO, KNOWN) == wanted


@given(st.text(max_size=300))
@settings(deadline=None)
def test_any_text_has_a_configuration(text: str) -> None:
    assert language_of(text, AUTO, KNOWN) in KNOWN
    assert language_of(text * 20, AUTO, KNOWN) == language_of(text * 20, AUTO, KNOWN)
