"""Identifiers, accents, scripts: what people type, and the passage that they mean."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from concordance.index import Index
from concordance.models import Answer, FileOrigin, LexicalRanking
from concordance.settings import Project
from tests.postgres.driver import ask, reindex
from tests.postgres.library import places, search, shared_index
from tests.sources import GitSource

# Each in a file of its own, beside one that holds its parts far from each other.
WHOLE = {
    "adr": "ADR-0012",
    "config": "config.yaml",
    "slash": "client/server",
    "camel": "getUserById",
    "snake": "snake_case",
    "flag": "-avz",
    "plus": "C++",
    "env": ".env",
    "short": "ADR-12",
    "version": "v1.2.3",
    "loop": "::1",
    "long": "--dry-run",
    "sharp": "C#",
    "path": "docs/adr/0007-use-rrf.md",
    "host": "db01.example.org",
    "scope": "std::vector",
    "mail": "ada@example.org",
}
PARTS = {
    "adr": "ADR and then 0012",
    "config": "config of yaml, yaml config",
    "slash": "client and server",
    "camel": "get the User By its Id",
    "snake": "snake in a case",
    "flag": "avz",
    "plus": "C and C",
    "env": "env",
    "short": "ADR and then 12",
    "version": "v1 and 2 and 3",
    "loop": "1 or 1",
    "long": "dry run",
    "sharp": "C",
    "path": "docs adr 0007 use rrf md",
    "host": "db01 example org",
    "scope": "std vector",
    "mail": "ada example org",
}
TEXTS = {
    "docs/client.md": "client/server",
    "docs/settings.md": "config.yaml",
    "docs/adr/0007-use-rrf.md": "fusion",
    "docs/release.md": "v0.8.0",
    "docs/one.md": "Decision ADR-0012 replaces ADR-0003",
    "docs/two.md": "See ADR 0012",
    "docs/adr/0012-queue.md": "# 12. Queue choice\n\nIt was decided.",
    "docs/ja.md": "復旧手順はこちら",
    "docs/en.md": "rollback notes",
    "docs/de.md": "Das Café öffnet",
    "docs/nfd.md": "Zoe\u0308 ge\u0301ne\u0301rale",
    "docs/zh.md": "当队列停止时请先重新启动工作进程",
    "docs/ko.md": "큐가 멈추면 작업자를 다시 시작하십시오",
    "docs/kana.md": "サーバーを再起動",
    "docs/half.md": "ﾃﾞｰﾀﾍﾞｰｽ",
    "docs/full.md": "Ｋｕｂｅｒｎｅｔｅｓ ｖ２．５",
    "docs/mixed.md": "Redis障害時のfailover手順A",
    "docs/lone.md": "the 鍵 sign",
    "docs/he.md": "שלום עולם תור ההזמנות",
    "docs/ar.md": "طابور الطلبات مُحَمَّد",
    "docs/hi.md": "हिन्दी नमस्ते दुनिया",
    "docs/th.md": "คู่มือ ระบบ",
    "docs/ru.md": "Ещё один ёлочный заказ",
    "docs/el.md": "Ουρά παραγγελιών",
    "docs/filler.md": "nothing that anybody asks for",
}
FILLER = {f"docs/filler{n}.md": f"Unrelated words number {n * 7919}\n" for n in range(20)}


def files_of(texts: dict[str, str]) -> dict[str, str | bytes]:
    return {name: text + "\n" for name, text in texts.items()}


@pytest.fixture(scope="module")
def index(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("identifiers")
    whole = {f"docs/{name}-whole.md": text for name, text in WHOLE.items()}
    parts = {f"docs/{name}-parts.md": text for name, text in PARTS.items()}
    sets = {"ids": whole | parts, "texts": TEXTS}
    with shared_index(server_url, "identifiers", folder / "home") as make:
        projects = [
            Project(
                slug=slug,
                path=GitSource.make(folder / slug, files_of(texts | FILLER)).path,
                language=language,
            )
            for slug, texts in sets.items()
            for language in ["english" if slug == "ids" else "simple"]
        ]
        index = make(*projects)
        for project in projects:
            reindex(index, project.slug, embed=False)
        url = make_conninfo(server_url, dbname="identifiers")
        with psycopg.connect(url, autocommit=True) as connection:
            # The server does it by itself within a minute, and until then the longest questions
            # below would each take half a minute.
            connection.execute("analyze")
        yield index


def found(index: Index, question: str, slug: str = "texts", **more: object) -> list[str]:
    answer = search(index, question, projects=[slug], fusion="lexical", **more)
    return [place.partition(":")[2] for place in places(answer)]


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_identifier_comes_before_its_parts(index: Index, name: str) -> None:
    asked = [WHOLE[name], WHOLE[name].upper() if name not in ("camel", "flag") else WHOLE[name]]
    for question in asked:
        order = found(index, question, "ids", top_k=50)
        assert order[0] == f"docs/{name}-whole.md", (question, order[:3])


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_identifier_is_found_inside_a_question(index: Index, name: str) -> None:
    order = found(index, f"what does “{WHOLE[name]}” mean?", "ids", top_k=50)
    assert order[0] == f"docs/{name}-whole.md"


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("client", "docs/client.md"),
        ("server", "docs/client.md"),
        ("config", "docs/settings.md"),
        ("yaml", "docs/settings.md"),
        ("0007-use-rrf", "docs/adr/0007-use-rrf.md"),
        ("rrf", "docs/adr/0007-use-rrf.md"),
        ("0.8.0", "docs/release.md"),
        ("client/server", "docs/client.md"),
        ("config.yaml", "docs/settings.md"),
        ("docs/adr/0007-use-rrf.md", "docs/adr/0007-use-rrf.md"),
        ("v0.8.0", "docs/release.md"),
    ],
)
def test_parts_find_the_whole_fts_5(index: Index, question: str, wanted: str) -> None:
    assert found(index, question)[0] == wanted


@pytest.mark.parametrize("question", ["ADR-0012", "ADR 0012", "0012", "adr 12", "adr-12"])
def test_the_number_of_a_decision_is_found_however_it_is_written_fts_6(
    index: Index, question: str
) -> None:
    best = found(index, question)[:3]
    assert set(best) == {"docs/one.md", "docs/two.md", "docs/adr/0012-queue.md"}, best


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("手順", "docs/ja.md"),
        ("復旧手順", "docs/ja.md"),
        ("rollback 手順", "docs/en.md"),
        ("cafe", "docs/de.md"),
        ("CAFÉ", "docs/de.md"),
        ("offnet", "docs/de.md"),
        ("o\u0308ffnet", "docs/de.md"),
        ("Zoë", "docs/nfd.md"),
        ("générale", "docs/nfd.md"),
        ("generale", "docs/nfd.md"),
        ("队列", "docs/zh.md"),
        ("重新启动", "docs/zh.md"),
        ("작업자", "docs/ko.md"),
        ("サーバー", "docs/kana.md"),
        ("ｻｰﾊﾞｰ", "docs/kana.md"),
        ("データベース", "docs/half.md"),
        ("kubernetes v2.5", "docs/full.md"),
        ("ｃｏｎｆｉｇ．ｙａｍｌ", "docs/settings.md"),
        ("redis", "docs/mixed.md"),
        ("failover", "docs/mixed.md"),
        ("障害", "docs/mixed.md"),
        ("鍵", "docs/lone.md"),
        ("תור", "docs/he.md"),
        ("الطلبات", "docs/ar.md"),
        ("हिन्दी", "docs/hi.md"),
        ("नमस्ते", "docs/hi.md"),
        ("ระบบ", "docs/th.md"),
        ("елочный", "docs/ru.md"),
        ("еще", "docs/ru.md"),
        ("ουρα", "docs/el.md"),
    ],
)
def test_accents_and_scripts_fts_9(index: Index, question: str, wanted: str) -> None:
    assert found(index, question)[0] == wanted


def test_both_halves_of_a_mixed_question_are_looked_for_fts_9(index: Index) -> None:
    assert {"docs/ja.md", "docs/mixed.md", "docs/en.md"} <= set(found(index, "rollback 手順"))


def test_a_word_of_an_abugida_is_no_other_word(index: Index) -> None:
    """Signs that combine with a letter belong to the word: a shared piece is no match."""
    assert found(index, "हिन्द") == []
    assert found(index, "नमस") == []


HARMLESS = [
    "what is this about",
    "a",
    "é",
    "🚀",
    "🚀🚀 👩‍👩‍👧 ❤️",
    "\"quotes\" 'single' “typographic” «these»",
    "--------",
    "-" * 5_000,
    "| a | b |\n|---|---|\n| 1 | config.yaml |\n" * 100,
    " ".join(f"word{n}" for n in range(10_000)),
    "config " * 10_000,
    "config\0yaml",
    "tea & !water | (kettle <-> boil):*",
    "& | ! <-> :* ( ) ' \\ \\'",
    "'; drop table concordance.chunks; --",
    "%s %(x)s {} {0} $1 :name",
    "\u202e\u200f\u200b\ufeff",
    "§1.docs §english §",
    "{1:1}/1000000000",
    "復" * 30_000,
    "".join(chr(0x20000 + n) for n in range(42_000))
    + "".join(chr(0x30000 + n) for n in range(4_900)),
    "".join(chr(0x20000 + n * (1, 11, 13)[n // 42_000] % 42_000) for n in range(100_000)),
    "Ⱥ" * 1_500,
    "ﷺ" * 2_000 + ".x",
    ("é" * 900 + " ") * 100,
    "x" * 100_000,
    " ".join(f"a{n}.b{n}/c{n}" for n in range(5_000)),
    " ".join(chr(97 + n % 26) * 2_000 for n in range(26)),
]


@pytest.mark.parametrize("number", range(len(HARMLESS)))
@pytest.mark.parametrize("ranking", list(LexicalRanking))
def test_no_question_hurts(index: Index, number: int, ranking: LexicalRanking) -> None:
    answer = _answer(index, HARMLESS[number], lexical_ranking=ranking, deadline_seconds=60)
    assert not answer.degraded
    assert answer.hits or answer.empty_reason
    assert all(hit.lexical_score is not None for hit in answer.hits)


def test_a_lone_surrogate_is_no_error(index: Index) -> None:
    assert index.search("config \ud800 \udfff yaml").hits


def _answer(index: Index, question: str, **more: object) -> Answer:
    return search(index, question, fusion="lexical", **more)


def test_a_pasted_table_is_searched_by_its_words(index: Index) -> None:
    table = "| file | meaning |\n|------|:-------:|\n| `config.yaml` | ??? |\n"
    assert found(index, table)[0] == "docs/settings.md"


def test_only_the_strongest_words_of_a_long_question_are_looked_for_and_it_says_so(
    index: Index,
) -> None:
    vocabulary = {
        row["lexeme"]
        for row in ask(
            index.configuration.settings.database_url.get_secret_value(),  # type: ignore[union-attr]
            "select lexeme from term_stats where language = 'simple'",
        )
    }
    every = " ".join(sorted(word for word in vocabulary if word.isalnum()))
    assert len(vocabulary) > 100
    answer = _answer(index, every, projects=["texts"], top_k=50)
    assert answer.hits
    assert (len(every.split()) > 256) == any("strongest 256" in note for note in answer.notes)
    for hit in answer.hits:
        assert isinstance(hit.origin, FileOrigin)
