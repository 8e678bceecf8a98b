"""Sets of questions with known answers, as folders in BEIR form.

What belongs here: reading and writing `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`, with errors
that name the file and the line. What is done with a set is `concordance.loading`'s matter and
`concordance.evaluating`'s.

Source of the form: Thakur et al. 2021, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of
Information Retrieval Models".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from concordance.errors import BadTestSet
from concordance.indexing.counting import counted
from concordance.models import MAX_QUERY_CHARACTERS, stored_path

CORPUS = "corpus.jsonl"
QUESTIONS = "queries.jsonl"
QRELS = ("qrels.tsv", "qrels/test.tsv")
# `query-id corpus-id`, the same with a score, or trec_eval's `query-id 0 corpus-id score`.
# Measures are computed with whole numbers of a fixed size.
MOST_SCORE = 1_000_000
MOST_COLUMNS = 4
# Besides ISO 8601; names of months and hours are English.
_DATES = ("%I:%M %p on %d %B, %Y", "%d %B, %Y", "%d %B %Y", "%B %d, %Y", "%Y/%m/%d (%a) %H:%M")
_HEADER_STARTS = ("query-id", "query_id", "qid", "query")


@dataclass(frozen=True, slots=True)
class Entry:
    """A document of a set; `scope` groups what a question may be answered from.

    With a `session` it is a turn of that conversation, with the time where the set has one.
    """

    id: str
    title: str
    text: str
    scope: str | None = None
    session: str | None = None
    date: datetime | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a set."""

    id: str
    text: str
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set as it lies in its folder; `relevant` has how well a document answers a question."""

    folder: Path
    corpus: tuple[Entry, ...]
    questions: tuple[Question, ...]
    relevant: Mapping[str, Mapping[str, int]]

    @property
    def name(self) -> str:
        """The folder's own name."""
        return stored_path(self.folder.name)

    @property
    def scoped(self) -> bool:
        """Whether its documents are in groups, of which a question may be answered from one."""
        return self.corpus[0].scope is not None

    @property
    def conversational(self) -> bool:
        """Whether its documents are turns of sessions."""
        return self.corpus[0].session is not None

    @property
    def answered(self) -> tuple[Question, ...]:
        """The questions with at least one relevant document; averages are over these."""
        return tuple(q for q in self.questions if q.id in self.relevant)

    def fingerprint(self) -> str:
        """A hash of the questions and their answers, whatever the order in the files."""
        digest = hashlib.sha256()
        for question in sorted(self.answered, key=lambda q: q.id):
            right = sorted(self.relevant[question.id].items())
            digest.update(json.dumps([question.id, question.text, right]).encode())
        return digest.hexdigest()


def read_set(folder: Path) -> QuestionSet:
    """Read a folder that holds a set.

    Raises:
        BadTestSet: A file is missing or can't be read, a line is malformed, an id stands twice,
            an answer names what is not there, or no question has an answer.
    """
    if not folder.is_dir():
        raise BadTestSet(
            f"there is no folder {folder}",
            hint=f"Give one that holds {CORPUS}, {QUESTIONS} and {QRELS[0]}",
        )
    corpus = tuple(_entry(row, where) for where, row in _objects(folder / CORPUS))
    questions = tuple(
        Question(_id(row, where), _question_text(row, where), _scope(row))
        for where, row in _objects(folder / QUESTIONS)
    )
    _check_unique(folder / CORPUS, (entry.id for entry in corpus))
    _check_unique(folder / QUESTIONS, (question.id for question in questions))
    _check_scopes(folder, corpus, questions)
    if len({entry.session is None for entry in corpus}) > 1:
        raise BadTestSet(f"{folder / CORPUS}: some documents have a 'session' and some have none")
    relevant = _qrels(folder, {q.id for q in questions}, {entry.id for entry in corpus})
    return QuestionSet(folder.resolve(), corpus, questions, relevant)


def write_set(
    folder: Path,
    corpus: Iterable[Entry],
    questions: Iterable[Question],
    relevant: Mapping[str, Mapping[str, int]],
) -> None:
    """Write a set into a folder, which is made where it is missing.

    Raises:
        BadTestSet: The folder holds a set already, or can't be written.
    """
    taken = next((name for name in (CORPUS, QUESTIONS, QRELS[0]) if (folder / name).exists()), None)
    if taken is not None:
        raise BadTestSet(f"{folder / taken} is there already", hint="Give a folder of its own")
    rows = [f"{q}\t{d}\t{score}" for q in relevant for d, score in relevant[q].items()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / CORPUS, (_entry_line(entry) for entry in corpus))
        _write(folder / QUESTIONS, (_line(_id=q.id, text=q.text) for q in questions))
        _write(folder / QRELS[0], ("query-id\tcorpus-id\tscore", *rows))
    except OSError as error:
        raise BadTestSet(f"{folder} can't be written: {error.strerror}") from error


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _entry_line(entry: Entry) -> str:
    return _line(_id=entry.id, title=entry.title, text=entry.text)


def _line(**values: str) -> str:
    return json.dumps(values, ensure_ascii=False)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Each line that is not blank, with its place for messages."""
    try:
        # By line feeds alone: JSON may hold other separators.
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield f"{path}, line {number}", line.strip("\r\n")
    except OSError as error:
        raise BadTestSet(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadTestSet(f"{path} is not UTF-8: {error.reason}") from error


def _objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for where, line in _lines(path):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadTestSet(f"{where}: not JSON: {error}") from error
        except RecursionError:
            raise BadTestSet(f"{where}: nested too deeply") from None
        if not isinstance(row, dict):
            raise BadTestSet(f"{where}: not a JSON object")
        yield where, row


def _entry(row: dict[str, Any], where: str) -> Entry:
    title, text = _text(row, "title", where), _text(row, "text", where)
    session = _text(row, "session", where) or None
    speaker = _text(row, "speaker", where) or None
    return Entry(_id(row, where), title, text, _scope(row), session, _date(row, where), speaker)


def _date(row: dict[str, Any], where: str) -> datetime | None:
    """When a turn was said; of another document it means nothing."""
    written = _text(row, "date", where).strip()
    if not written or not row.get("session"):
        return None
    with suppress(ValueError):
        found = datetime.fromisoformat(written)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    for form in _DATES:
        with suppress(ValueError):
            return datetime.strptime(written, form).replace(tzinfo=UTC)
    raise BadTestSet(
        f"{where}: the date '{written[:60]}' can't be read", hint="Write it as ISO 8601"
    )


def _id(row: dict[str, Any], where: str) -> str:
    found = row.get("_id", row.get("id"))
    # Some sets number their documents; their qrels name the same digits.
    if isinstance(found, bool) or not isinstance(found, (str, int)) or not str(found).strip():
        raise BadTestSet(f"{where}: no '_id' or 'id'")
    if "\t" in str(found) or "\0" in str(found):
        raise BadTestSet(f"{where}: an id holds no tab and no NUL")
    return str(found)


def _text(row: dict[str, Any], key: str, where: str) -> str:
    found = row.get(key) or ""
    if not isinstance(found, str):
        raise BadTestSet(f"{where}: '{key}' is no text")
    return found.replace("\0", " ").encode(errors="replace").decode()


def _question_text(row: dict[str, Any], where: str) -> str:
    text = _text(row, "text", where)
    if not text.strip():
        raise BadTestSet(f"{where}: the question is blank")
    if len(text) > MAX_QUERY_CHARACTERS:
        raise BadTestSet(
            f"{where}: the question has {len(text):,} characters",
            hint=f"A search takes {MAX_QUERY_CHARACTERS:,} at most",
        )
    return text


def _scope(row: dict[str, Any]) -> str | None:
    found = row.get("scope")
    return str(found) if found not in (None, "") else None


def _check_unique(path: Path, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for found in ids:
        if found in seen:
            raise BadTestSet(f"{path}: the id '{found}' stands twice")
        seen.add(found)
    if not seen:
        raise BadTestSet(f"{path} is empty")


def _check_scopes(folder: Path, corpus: tuple[Entry, ...], questions: tuple[Question, ...]) -> None:
    """All documents have a scope or none has; a question's is one of theirs."""
    scopes = {entry.scope for entry in corpus}
    if None in scopes and len(scopes) > 1:
        raise BadTestSet(f"{folder / CORPUS}: some documents have a 'scope' and some have none")
    for question in questions:
        if question.scope not in scopes | {None}:
            raise BadTestSet(
                f"{folder / QUESTIONS}: no document has the scope '{question.scope}' of the "
                f"question '{question.id}'"
            )


def _qrels(folder: Path, questions: set[str], corpus: set[str]) -> dict[str, dict[str, int]]:
    path = next((folder / name for name in QRELS if (folder / name).exists()), folder / QRELS[0])
    relevant: dict[str, dict[str, int]] = {}
    for number, (where, line) in enumerate(_lines(path)):
        columns = [column.strip() for column in line.split("\t" if "\t" in line else None)]
        if number == 0 and columns[0].lower() in _HEADER_STARTS and columns[0] not in questions:
            continue
        question, document, score = _columns(columns, where)
        if question not in questions:
            raise BadTestSet(f"{where}: {QUESTIONS} has no question '{question}'")
        if document not in corpus:
            raise BadTestSet(f"{where}: {CORPUS} has no document '{document}'")
        if score > 0:
            relevant.setdefault(question, {})[document] = score
    if not relevant:
        raise BadTestSet(f"{path}: no question has a relevant document")
    return relevant


def _columns(columns: list[str], where: str) -> tuple[str, str, int]:
    """Question, document and how well it answers: 1 where nothing is said."""
    match columns:
        case [question, document]:
            return question, document, 1
        case [question, document, score] | [question, _, document, score]:
            try:
                number = int(score)
            except ValueError:
                raise BadTestSet(f"{where}: the score '{score}' is no whole number") from None
            if abs(number) > MOST_SCORE:
                raise BadTestSet(f"{where}: the score {score[:30]} is beyond {MOST_SCORE:,}")
            return question, document, number
        case _:
            raise BadTestSet(
                f"{where}: {counted(len(columns), 'column')}, expected 2 to {MOST_COLUMNS}"
            )
