from __future__ import annotations

import json
from pathlib import Path

import pytest

from concordance.adapters.beir import Entry, Question, read_set, write_set
from concordance.errors import BadTestSet

CORPUS = '{"_id": "a", "title": "Tea", "text": "Boil water."}\n{"_id": "b", "text": "Wait."}\n'
QUESTIONS = '{"_id": "1", "text": "how to make tea?"}\n{"_id": "2", "text": "and coffee?"}\n'
QRELS = "query-id\tcorpus-id\tscore\n1\ta\t1\n"


def make(
    folder: Path, corpus: str = CORPUS, questions: str = QUESTIONS, qrels: str = QRELS
) -> Path:
    (folder / "corpus.jsonl").write_text(corpus)
    (folder / "queries.jsonl").write_text(questions)
    (folder / "qrels.tsv").write_text(qrels)
    return folder


def test_a_set_is_read(tmp_path: Path) -> None:
    found = read_set(make(tmp_path))
    assert found.name == tmp_path.name
    assert found.corpus == (Entry("a", "Tea", "Boil water."), Entry("b", "", "Wait."))
    assert found.answered == (Question("1", "how to make tea?"),)
    assert len(found.questions) == 2
    assert found.relevant == {"1": {"a": 1}}
    assert not found.scoped


@pytest.mark.parametrize(
    "qrels",
    [
        "1\ta\n",
        "1 a\n",
        "1\ta\t1\n",
        "1\t0\ta\t1\n",
        "1 0 a 1\n",
        "\n1\ta\t1\n\n",
        "qid\tdocid\trel\n1\ta\t1\n",
        "query-id\tcorpus-id\tscore\r\n1\ta\t1\r\n",
        "1\ta\t1\n1\tb\t0\n",
    ],
)
def test_answers_in_every_form_that_is_about(tmp_path: Path, qrels: str) -> None:
    assert read_set(make(tmp_path, qrels=qrels)).relevant == {"1": {"a": 1}}


def test_answers_in_a_folder_of_their_own(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels.tsv").rename(tmp_path / "qrels" / "test.tsv")
    assert read_set(tmp_path).relevant == {"1": {"a": 1}}


def test_other_names_of_ids_and_numbers_as_ids(tmp_path: Path) -> None:
    make(tmp_path, corpus='{"id": 7, "text": "x"}', questions='{"id": 1, "text": "y"}')
    (tmp_path / "qrels.tsv").write_text("1\t7\t3\n")
    found = read_set(tmp_path)
    assert (found.corpus[0].id, found.relevant) == ("7", {"1": {"7": 3}})


def test_scopes_group_documents(tmp_path: Path) -> None:
    corpus = '{"id": "a", "text": "x", "scope": "s"}'
    found = read_set(
        make(tmp_path, corpus, '{"id": "1", "text": "y", "scope": "s"}', qrels="1\ta\n")
    )
    assert found.scoped
    assert found.questions[0].scope == "s"


@pytest.mark.parametrize(
    ("part", "text", "where"),
    [
        ("corpus", "[1]", "corpus.jsonl, line 1: not a JSON object"),
        ("corpus", CORPUS + "{", "corpus.jsonl, line 3: not JSON"),
        ("corpus", '{"text": "x"}', "corpus.jsonl, line 1: no '_id' or 'id'"),
        ("corpus", '{"id": true, "text": "x"}', "no '_id' or 'id'"),
        ("corpus", '{"id": "a\\tb", "text": "x"}', "no tab"),
        ("corpus", '{"id": "a", "text": 3}', "'text' is no text"),
        ("corpus", CORPUS + CORPUS, "the id 'a' stands twice"),
        ("corpus", "", "corpus.jsonl is empty"),
        ("corpus", '{"id": "a", "text": ""}\n{"id": "b", "scope": "s"}', "some have none"),
        (
            "corpus",
            '{"id": "a", "more": ' + "[" * 100_000,
            "corpus.jsonl, line 1: nested too deeply",
        ),
        (
            "questions",
            json.dumps({"id": "1", "text": "x" * 100_001}),
            "queries.jsonl, line 1: the question has 100,001 characters",
        ),
        ("qrels", f"1\ta\t{10**20}\n", "qrels.tsv, line 1: the score 1000"),
        ("questions", '{"id": "1", "text": " "}', "queries.jsonl, line 1: the question is blank"),
        ("questions", '{"id": "1", "text": "x", "scope": "t"}', "scope 't' of the question '1'"),
        ("qrels", "1\n", "qrels.tsv, line 1: 1 column,"),
        ("qrels", "1\ta\tmuch\n", "qrels.tsv, line 1: the score 'much'"),
        ("qrels", QRELS + "9\ta\t1\n", "qrels.tsv, line 3: queries.jsonl has no question '9'"),
        ("qrels", "1\tz\t1\n", "line 1: corpus.jsonl has no document 'z'"),
        ("qrels", "1\ta\t0\n", "no question has a relevant document"),
        ("qrels", "", "no question has a relevant document"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(
    tmp_path: Path, part: str, text: str, where: str
) -> None:
    make(tmp_path, **{part: text})
    with pytest.raises(BadTestSet) as raised:
        read_set(tmp_path)
    assert where in raised.value.message
    assert str(tmp_path) in raised.value.message


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(BadTestSet, match="there is no folder"):
        read_set(tmp_path / "nowhere")
    with pytest.raises(BadTestSet, match=r"corpus\.jsonl can't be read: No such file"):
        read_set(tmp_path)
    make(tmp_path)
    (tmp_path / "corpus.jsonl").write_bytes(b'{"id": "\xff"}')
    with pytest.raises(BadTestSet, match="is not UTF-8"):
        read_set(tmp_path)


def test_signs_that_no_database_takes_are_replaced(tmp_path: Path) -> None:
    corpus = json.dumps({"id": "a", "text": "x\0y\ud800", "title": None})
    found = read_set(make(tmp_path, corpus, qrels="1\ta\n"))
    assert found.corpus[0] == Entry("a", "", "x y?")


def test_line_separators_inside_a_text_end_no_line(tmp_path: Path) -> None:
    corpus = '{"id": "a", "text": "one\u2028two\x85three"}'
    found = read_set(make(tmp_path, corpus, qrels="1\ta\n"))
    assert found.corpus[0].text == "one\u2028two\x85three"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    corpus = [Entry("a#0", "Té > 茶", 'Line\n"two"\u2028'), Entry("b", "", "x")]
    questions = [Question("q1", "où?")]
    write_set(tmp_path / "out", corpus, questions, {"q1": {"a#0": 1, "b": 2}})
    found = read_set(tmp_path / "out")
    assert list(found.corpus) == corpus
    assert list(found.questions) == questions
    assert found.relevant == {"q1": {"a#0": 1, "b": 2}}
    with pytest.raises(BadTestSet, match="is there already"):
        write_set(tmp_path / "out", corpus, questions, {})


def test_a_folder_that_can_t_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadTestSet, match="can't be written"):
        write_set(tmp_path / "file" / "out", [], [], {})


def test_the_fingerprint_is_that_of_questions_and_answers(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    one = read_set(make(tmp_path / "a"))
    turned = "".join(reversed(QUESTIONS.splitlines(keepends=True)))
    same = read_set(make(tmp_path / "b", questions=turned))
    other = read_set(make(tmp_path / "c", qrels="1\tb\n"))
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


# --- conversations ---------------------------------------------------------------------------


def turn(**values: str) -> str:
    return json.dumps({"_id": "a", "text": "Hello.", "session": "s"} | values) + "\n"


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("2023-05-08T13:56:00+02:00", "2023-05-08 13:56:00+02:00"),
        ("2023-05-08", "2023-05-08 00:00:00+00:00"),
        ("1:56 pm on 8 May, 2023", "2023-05-08 13:56:00+00:00"),
        ("8 May 2023", "2023-05-08 00:00:00+00:00"),
        ("", "None"),
    ],
)
def test_a_turn_has_a_session_and_a_time(tmp_path: Path, date: str, expected: str) -> None:
    found = read_set(make(tmp_path, corpus=turn(date=date, speaker="Ana")))
    assert found.conversational
    (entry,) = found.corpus
    assert (entry.session, entry.speaker, str(entry.date)) == ("s", "Ana", expected)


def test_a_date_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadTestSet, match="line 1: the date 'once' can't be read"):
        read_set(make(tmp_path, corpus=turn(date="once")))


def test_a_date_of_another_document_means_nothing(tmp_path: Path) -> None:
    (entry,) = read_set(make(tmp_path, corpus='{"_id": "a", "text": "x", "date": "once"}\n')).corpus
    assert entry.date is None


def test_all_documents_are_turns_or_none_is(tmp_path: Path) -> None:
    with pytest.raises(BadTestSet, match="some documents have a 'session' and some have none"):
        read_set(make(tmp_path, corpus=turn() + '{"_id": "b", "text": "x"}\n'))
