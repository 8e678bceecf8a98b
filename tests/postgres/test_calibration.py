"""A project's own numbers: fitted on one half, judged on the other, used, shown and undone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concordance import calibrating
from concordance.adapters.beir import read_set
from concordance.cli.doctor import Model, calibration_finding
from concordance.errors import BadRecord, BadTestSet, UnknownProject
from concordance.figures import CalibrationReport
from concordance.index import Index
from concordance.models import SearchRequest
from concordance.ranking import fusion
from concordance.ranking.calibration import Check, Part
from concordance.ranking.confidence import DEFAULT, DEFAULT_THRESHOLD
from concordance.ranking.fusion import CONVEX_WEIGHT
from concordance.settings import Project, ScopeRules, SessionSource
from tests.conftest import IndexMaker
from tests.fake_ollama import FakeModel, FakeOllama
from tests.postgres.driver import fill, reindex
from tests.postgres.library import search
from tests.postgres.sets import manuals, misleading
from tests.sources import GitSource, event, write_log


@pytest.fixture
def index(make_index: IndexMaker, tmp_path: Path) -> Index:
    files: dict[str, str | bytes] = {
        "docs/guide.md": "# Guide\n\n## Water\n\nBoil water.\n\n## Tea\n\nAdd tea leaves.\n",
        "docs/more.md": "# More\n\nKettles are sold here.\n",
    }
    source = GitSource.make(tmp_path / "p", files)
    other = GitSource.make(tmp_path / "other", {"docs/a.md": "# Other\n\nAnother water.\n"})
    opened = make_index(Project(slug="p", path=source.path), Project(slug="o", path=other.path))
    reindex(opened)
    reindex(opened, "o")
    return opened


def check_of(report: CalibrationReport, part: Part) -> Check:
    return next(check for check in report.calibration.figures if check.part is part)


def ask(index: Index, **more: object) -> tuple[dict[str, float], str]:
    request = {"text": "boil water", "projects": ("p",)} | more
    answer = index.search(SearchRequest.model_validate(request))
    return answer.fusion_parameters, " ".join(answer.notes)


def test_what_is_better_is_kept_used_shown_and_undone(index: Index, tmp_path: Path) -> None:
    assert ask(index) == ({"threshold": DEFAULT_THRESHOLD, "vector_weight": CONVEX_WEIGHT}, "")
    told: list[str] = []
    folder = misleading(tmp_path / "misleading")
    report = index.calibrate("p", folder, progress=lambda stage, *_: told.append(stage))
    assert set(told) == {"write", "embed", "ask", "fit"}
    own = report.calibration
    weight = check_of(report, Part.WEIGHT)
    assert report.stored
    assert weight.kept
    assert weight.gain.better
    assert own.vector_weight == weight.value
    assert (own.vector_weight or 1.0) < CONVEX_WEIGHT
    assert (own.project, own.set_name, own.fitted_on, own.checked_on) == ("p", "misleading", 40, 40)
    assert own.questions_hash == read_set(folder).fingerprint()
    assert index.stored_calibrations() == [own]

    parameters, notes = ask(index)
    assert parameters["vector_weight"] == own.vector_weight
    assert parameters["threshold"] == (own.threshold or DEFAULT_THRESHOLD)
    assert "calibrated for 'p'" in notes
    assert "'misleading'" in notes

    assert index.undo_calibration("p")
    assert not index.undo_calibration("p")
    assert ask(index) == ({"threshold": DEFAULT_THRESHOLD, "vector_weight": CONVEX_WEIGHT}, "")


def test_the_caller_s_numbers_come_first(index: Index, tmp_path: Path) -> None:
    index.calibrate("p", misleading(tmp_path / "misleading"))
    given, _ = ask(index, threshold=0.01, vector_weight=0.9)
    assert given == {"threshold": 0.01, "vector_weight": 0.9}
    assert ask(index, fusion="weighted")[0]["vector_weight"] == 0.6
    assert ask(index, fusion="convex", vector_weight=0.5)[0]["vector_weight"] == 0.5


def test_a_search_over_more_than_one_project_uses_the_defaults(
    index: Index, tmp_path: Path
) -> None:
    index.calibrate("p", misleading(tmp_path / "misleading"))
    for projects in (None, ("p", "o"), ("o",)):
        parameters, notes = ask(index, projects=projects)
        assert parameters["vector_weight"] == CONVEX_WEIGHT
        assert notes == ""


def test_another_model_s_vectors_are_not_judged_by_it(
    index: Index, tmp_path: Path, provider: FakeOllama, make_index: IndexMaker
) -> None:
    index.calibrate("p", misleading(tmp_path / "misleading"))
    provider.models["other:latest"] = FakeModel(dimensions=32)
    changed = make_index(*index.configuration.projects, embedding_model="ollama/other")
    fill(changed)
    parameters, notes = ask(changed)
    assert parameters["vector_weight"] == CONVEX_WEIGHT
    assert "is not used" in notes


def test_what_is_no_better_is_not_kept(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = misleading(tmp_path / "misleading")
    own = index.calibrate("p", folder).calibration
    index.undo_calibration("p")
    monkeypatch.setattr(fusion, "CONVEX_WEIGHT", own.vector_weight)
    monkeypatch.setattr(calibrating, "DEFAULT", own.confidence or DEFAULT)
    monkeypatch.setattr(calibrating, "DEFAULT_THRESHOLD", own.threshold or DEFAULT_THRESHOLD)
    again = index.calibrate("p", folder)
    assert not again.stored
    assert not any(check.kept for check in again.calibration.figures)
    assert "no better than the default" in check_of(again, Part.WEIGHT).reason
    assert index.stored_calibrations() == []


def test_a_weight_below_the_better_leg_is_not_kept(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrating, "WEIGHTS", (0.95, 1.0))
    report = index.calibrate("p", misleading(tmp_path / "misleading"))
    weight = check_of(report, Part.WEIGHT)
    assert not weight.kept
    assert "below the lexical leg" in weight.reason
    assert report.calibration.vector_weight is None


def test_the_same_set_gives_the_same_numbers(index: Index, tmp_path: Path) -> None:
    folder = misleading(tmp_path / "misleading")
    first = index.calibrate("p", folder)
    lines = (folder / "queries.jsonl").read_text().splitlines()
    (folder / "queries.jsonl").write_text("\n".join(reversed(lines)))
    again = index.calibrate("p", folder)
    skip = {"calibration": {"made_at"}}
    assert again.model_dump(exclude=skip) == first.model_dump(exclude=skip)


def test_what_can_t_be_calibrated_is_refused(index: Index, tmp_path: Path) -> None:
    with pytest.raises(BadTestSet, match="has 5 questions"):
        index.calibrate("p", manuals(tmp_path / "few", 5))
    with pytest.raises(UnknownProject):
        index.calibrate("nowhere", tmp_path)
    with pytest.raises(UnknownProject):
        index.undo_calibration("nowhere")


# --- recorded questions ----------------------------------------------------------------------


def test_questions_are_recorded_listed_exported_and_removed(index: Index, tmp_path: Path) -> None:
    hits = search(index, "tea leaves", projects=("p",)).hits
    index.record_question("p", "tea leaves", hits[0])
    index.record_question("p", "tea leaves", 1)
    index.record_question("p", " boil water\0", "docs/guide.md:5-5")
    index.record_question("p", "what is sold?", "p:docs/more.md:3@0123abcd")
    kept = index.recorded_questions("p")
    assert [(row.question, row.name) for row in kept] == [
        ("tea leaves", "docs/guide.md"),
        ("boil water", "docs/guide.md"),
        ("what is sold?", "docs/more.md"),
    ]
    assert index.recorded_questions("o") == []
    assert index.recorded_questions() == kept

    done = index.export_questions("p", tmp_path / "own")
    assert (done.passages, done.questions, done.lost) == (3, 3, ())
    found = read_set(tmp_path / "own")
    texts = {entry.id: entry.text for entry in found.corpus}
    for question in found.questions:
        (right,) = found.relevant[question.id]
        word = {"tea leaves": "leaves", "boil water": "Boil", "what is sold?": "sold"}
        assert word[question.text] in texts[right]
    assert found.corpus[0].title == "Guide > Water"
    measured = index.evaluate(tmp_path / "own")
    assert measured.questions == 3

    assert index.forget_question(kept[0].id)
    assert not index.forget_question(kept[0].id)
    assert len(index.recorded_questions()) == 2


def test_a_turn_of_a_session_can_be_right(make_index: IndexMaker, tmp_path: Path) -> None:
    source = GitSource.make(tmp_path / "s", {"docs/a.md": "# A\n\nNothing of it.\n"})
    log = tmp_path / "logs" / "talk.jsonl"
    write_log(log, [event("talk", n, text) for n, text in enumerate(("brew tea", "boil water"))])
    sessions = (SessionSource(path=tmp_path / "logs"),)
    index = make_index(Project(slug="s", path=source.path, sessions=sessions))
    reindex(index, "s")
    index.record_question("s", "what about water?", 1)
    (row,) = index.recorded_questions("s")
    assert (row.kind, row.name, row.start_line) == ("session", "talk", None)
    index.record_question("s", "what about water?", f"session talk#{row.event_id}")
    assert index.recorded_questions("s") == [row]
    index.export_questions("s", tmp_path / "own")
    (right,) = read_set(tmp_path / "own").relevant["q1"]
    assert right.startswith("session talk#")


def test_a_turn_is_named_as_its_citation_has_it(make_index: IndexMaker, tmp_path: Path) -> None:
    """Ids of sessions and of events may hold the sign that stands between them."""
    source = GitSource.make(
        tmp_path / "s",
        {"docs/a.md": "# A\n\nNothing of it.\n", "docs/session x#y.md": "# X\n\nA quay.\n"},
    )
    for session in ("notes.md", "notes.md#2", "plain"):
        log = tmp_path / "logs" / f"{session}.jsonl"
        write_log(log, [event(session, 0, f"the otter of {session}", event_id="e#1")])
    sessions = (SessionSource(path=tmp_path / "logs"),)
    index = make_index(Project(slug="s", path=source.path, sessions=sessions))
    reindex(index, "s")
    hits = search(index, "otter quay", top_k=10).hits
    assert {"s:session notes.md#e#1", "s:session notes.md#2#e#1"} <= {h.citation for h in hits}
    for hit in hits:
        kept = index.record_question("s", hit.citation, hit.citation)
        assert kept == index.record_question("s", hit.citation, hit)
    assert len(index.recorded_questions("s")) == len(hits) == 5
    with pytest.raises(BadRecord, match="has no passage at session plain#e#2"):
        index.record_question("s", "what?", "s:session plain#e#2")


def test_names_that_differ_in_blanks_alone_are_told_apart_in_an_export(
    make_index: IndexMaker, tmp_path: Path
) -> None:
    names = ["a\tb", "a b", "a\\tb", "a\\u0009b", "a\nb", "a\r", "a\u2003"]
    paths = [*(f"docs/{name}.md" for name in names), " docs/a.md", "session docs/a.md"]
    files: dict[str, str | bytes] = {p: f"# N\n\nOtter {n}.\n" for n, p in enumerate(paths)}
    source = GitSource.make(tmp_path / "s", files)
    log = tmp_path / "logs" / "a.jsonl"
    write_log(log, [event("docs/a.md", 0, "An otter.")])
    sessions = (SessionSource(path=tmp_path / "logs"),)
    index = make_index(
        Project(
            slug="s",
            path=source.path,
            sessions=sessions,
            scopes=ScopeRules(docs=("docs", " docs", "session docs")),
        )
    )
    reindex(index, "s")
    hits = search(index, "otter", top_k=50).hits
    assert len(hits) == len(paths) + 1
    for hit in hits:
        index.record_question("s", hit.content, hit)
    done = index.export_questions("s", tmp_path / "own")
    assert (done.questions, done.lost) == (len(hits), ())
    own = read_set(tmp_path / "own")
    texts = {entry.id: entry.text for entry in own.corpus}
    for question in own.questions:
        (right,) = own.relevant[question.id]
        assert texts[right] == question.text


@pytest.mark.parametrize("form", ["{}", "e{}", "line-{}", "1893556801.00010{}"])
def test_a_turn_within_a_passage_can_be_right(
    make_index: IndexMaker, tmp_path: Path, form: str
) -> None:
    source = GitSource.make(tmp_path / "s", {"docs/a.md": "# A\n\nNothing of it.\n"})
    said = [
        *(("chat.message", "What of the otter by the quay?"), ("agent.response", "It sleeps.")),
        *(("chat.message", "Which port has it?"), ("agent.response", "5432")),
        *(("agent.response", "That one."), ("agent.response", "Yes")),
        *(("chat.message", "And who feeds it there?"), ("agent.response", "Nobody does.")),
    ]
    talk = [
        event("talk", n, text, type=kind, event_id=form.format(n))
        for n, (kind, text) in enumerate(said)
    ]
    other = [
        event("other", n, text, type=kind, event_id=name)
        for n, (name, (kind, text)) in enumerate(zip(("c", "a", "b", "d"), said[2:], strict=False))
    ]
    write_log(tmp_path / "logs" / "talk.jsonl", [*talk, *other])
    sessions = (SessionSource(path=tmp_path / "logs"),)
    index = make_index(Project(slug="s", path=source.path, sessions=sessions))
    reindex(index, "s")
    index.record_question("s", "which port?", f"session talk#{form.format(4)}")
    index.export_questions("s", tmp_path / "own")
    own = read_set(tmp_path / "own")
    (right,) = own.relevant["q1"]
    (entry,) = [e for e in own.corpus if e.id == right]
    assert entry.text == "Which port has it?\n\n5432\n\nThat one.\n\nYes"
    for none in (form.format(9), "x-4", "4.5.6"):
        with pytest.raises(BadRecord, match="has no passage at"):
            index.record_question("s", "which port?", f"session talk#{none}")
    # Ids that are no numbers say nothing of their order.
    with pytest.raises(BadRecord, match="has no passage at"):
        index.record_question("s", "which port?", "session other#a")


@pytest.mark.parametrize(
    ("question", "right", "said"),
    [
        ("  \0", 1, "a question has"),
        ("x", "docs/guide.md:900-901", "has no passage at"),
        ("x", "docs/nowhere.md:1", "has no passage at"),
        ("x", "docs/guide.md", "names no place"),
        ("x", "docs/guide.md:5-3", "names no place"),
        ("x", "session #", "names no place"),
        ("x", "", "names no place"),
        ("x", 0, "a rank is 1 to"),
        ("boil water", 100, "so none at rank 100"),
    ],
)
def test_a_place_that_is_not_there_is_refused(
    index: Index, question: str, right: str | int, said: str
) -> None:
    with pytest.raises(BadRecord, match=said):
        index.record_question("p", question, right)
    assert index.recorded_questions() == []


def test_questions_whose_answer_is_gone_are_left_out(index: Index, tmp_path: Path) -> None:
    with pytest.raises(BadRecord, match="no recorded question"):
        index.export_questions("p", tmp_path / "none")
    index.record_question("p", "boil water", "docs/guide.md:5-5")
    index.record_question("p", "kettles", "docs/more.md:3-3")
    GitSource(tmp_path / "p").commit({}, delete=["docs/more.md"])
    reindex(index)
    done = index.export_questions("p", tmp_path / "own")
    assert done.lost == ("kettles",)
    assert json.loads((tmp_path / "own" / "queries.jsonl").read_text())["text"] == "boil water"


def test_the_doctor_does_not_praise_a_calibration_of_another_model(
    index: Index, tmp_path: Path
) -> None:
    own = index.calibrate("p", misleading(tmp_path / "misleading")).calibration
    good = [
        calibration_finding(own, model).good
        for model in (
            None,
            Model(own.model_name),
            Model(own.model_name, own.model),
            Model("ollama/other:latest"),
            Model(own.model_name, "another version of it"),
        )
    ]
    assert good == [True, True, True, False, False]
    finding = calibration_finding(own, Model("ollama/other:latest"))
    assert "--project p" in (finding.mend or "")
    assert "is not used" in (finding.mend or "")
