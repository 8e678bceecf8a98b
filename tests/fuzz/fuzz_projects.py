"""`projects.toml` and variables with anything in them: checked values, or an error of ours."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from concordance.adapters.environment import read_configuration
from concordance.adapters.git_policy import check_branch, check_url
from concordance.errors import ConcordanceError, SourceRefused
from concordance.settings import Project, ScopeRules, Settings
from tests.fuzz.profile import FUZZED

SECRET = "ghp_FAKE0000FAKE0000FAKE0000FAKE0000FAKE"
ODD = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["..", "/", "-x", "~", "~nobody/x", "a/../b", "ext::sh", "file:///", "\0", "_"]
    ),
    st.sampled_from([f"https://{SECRET}@example.org/r.git", f"git@h:{SECRET}", "https://h/?a=b#c"]),
)
VALUES = st.one_of(
    ODD.map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(
        ["true", "[]", "{}", "1", "-1", "1e400", "nan", "1979-05-27", '["a"]', "[[1]]"]
    ),
)
KEYS = st.sampled_from(
    [*Project.model_fields, *ScopeRules.model_fields, "sessions", "odd", '"a b"']
)
TABLES = st.sampled_from(["[settings]", "[[projects]]", "[projects.scopes]", "[other]", "[[", ""])
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(" = ".join),
    st.tuples(st.sampled_from(list(Settings.model_fields)), VALUES).map(" = ".join),
    TABLES,
    st.just('[[projects]]\nslug = "a"\nurl = "https://h/r.git"'),
    st.text(max_size=20),
)


@FUZZED
@given(
    st.lists(LINES, max_size=12).map("\n".join),
    st.dictionaries(
        st.sampled_from([f"CONCORDANCE_{name.upper()}" for name in Settings.model_fields]), ODD
    ),
)
def test_a_file_is_read_or_refused_in_our_own_words(text: str, variables: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "projects.toml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        given_variables = variables | {"CONCORDANCE_PROJECTS_FILE": str(path)}
        try:
            configuration = read_configuration(given_variables)
        except ConcordanceError as error:
            assert error.message
            assert SECRET not in str(error)
            return
        assert len({p.slug for p in configuration.projects}) == len(configuration.projects)


@FUZZED
@given(ODD, ODD)
def test_an_address_or_a_branch_passes_or_is_refused_without_being_repeated(
    url: str, branch: str
) -> None:
    for asked, parameter, value in (
        (partial(check_url, url, ("https", "ssh", "file")), "url ", url),
        (partial(check_branch, branch), "branch ", branch),
    ):
        try:
            asked()
        except SourceRefused as error:
            assert error.message.startswith(parameter)
            assert SECRET not in str(error)
        else:
            assert not value.startswith("-")
            assert "::" not in value.partition("/")[0] or value.startswith("https://")
