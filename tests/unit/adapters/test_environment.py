"""Settings and projects from variables and `projects.toml`: every message names the place."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from concordance.adapters import git_environment as git_adapter
from concordance.adapters.environment import (
    GIT_VARIABLES,
    git_environment,
    process_environment,
    read_configuration,
    read_secret,
    set_process_variables,
    write_projects_file,
)
from concordance.errors import ConcordanceError, ProjectsFileError, SettingsError
from concordance.settings import Configuration, Credentials

TOKEN = "ghp_FAKE0000"
PROJECT = '[[projects]]\nslug = "a"\npath = "../a"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "projects.toml"


def read(file: Path, text: str | bytes | None = None, **variables: str) -> Configuration:
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    environ = {f"CONCORDANCE_{name.upper()}": value for name, value in variables.items()}
    return read_configuration(environ | {"CONCORDANCE_PROJECTS_FILE": str(file)})


def refusal(file: Path, text: str | bytes | None = None, **variables: str) -> str:
    with pytest.raises(ConcordanceError) as caught:
        read(file, text, **variables)
    assert isinstance(caught.value, ProjectsFileError | SettingsError)
    assert TOKEN not in f"{caught.value!r}{caught.value.__cause__!r}{caught.value.hint}"
    return str(caught.value)


# --- where values come from ------------------------------------------------------------------


def test_a_variable_goes_before_the_file_and_the_file_before_the_default(file: Path) -> None:
    text = "[settings]\ndatabase_pool = 7\nmax_files = 9\n"
    settings = read(file, text, database_pool="8").settings
    assert (settings.database_pool, settings.max_files, settings.max_parallel_projects) == (8, 9, 4)


def test_an_empty_variable_is_an_unset_one(file: Path) -> None:
    assert read(file, "", database_pool="", database_url="").settings.database_pool == 10


def test_lists_in_variables_are_parted_by_commas(file: Path) -> None:
    assert read(file, "", allowed_schemes="https, file,").settings.allowed_schemes == (
        "https",
        "file",
    )


def test_a_file_may_start_with_a_byte_order_mark_and_have_windows_lines(file: Path) -> None:
    text = "\ufeff" + PROJECT.replace("\n", "\r\n")
    assert [p.slug for p in read(file, text).projects] == ["a"]


def test_without_a_file_there_are_no_projects_where_none_are_needed(file: Path) -> None:
    environ = {"CONCORDANCE_PROJECTS_FILE": str(file)}
    assert read_configuration(environ, need_projects=False).projects == ()
    message = refusal(file)
    assert str(file) in message
    assert "concordance projects add" in message


def test_the_file_is_looked_for_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "projects.toml").write_text(PROJECT)
    found = read_configuration({})
    assert found.settings.projects_file == tmp_path / "projects.toml"
    assert found.settings.home.is_absolute()


def test_paths_in_the_file_are_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "conf", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    text = '[settings]\nhome = "state"\n' + PROJECT
    text += 'sessions = [{path = "logs"}, {path = "~/logs"}, {path = "/var/logs"}]\n'
    found = read(folder / "projects.toml", text)
    assert found.settings.home == folder / "state"
    assert found.projects[0].path == folder / "../a"
    assert [source.path for source in found.projects[0].sessions] == [
        folder / "logs",
        tmp_path / "me" / "logs",
        Path("/var/logs"),
    ]


def test_a_path_in_a_variable_is_from_where_the_command_runs(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert read(file, '[settings]\nhome = "x"\n', home="y").settings.home == tmp_path / "here/y"


def test_a_home_folder_that_nobody_has_is_named(file: Path) -> None:
    message = refusal(file, '[[projects]]\nslug = "a"\npath = "~nobody-of-that-name/r"\n')
    assert "~nobody-of-that-name/r" in message


# --- messages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[settings]\ndatabase_pool = 0\n", "{file}, [settings], key 'database_pool': "),
        ("[settings]\npool = 1\n", "{file}, [settings], key 'pool': there is no such key"),
        ("settings = 3\n", "{file}: 'settings' is no table"),
        ("[setings]\n", "{file}: unknown table or key 'setings'"),
        ("projects = 3\n", "{file}: 'projects' is no list of tables"),
        ("[projects]\nslug = 'a'\n", "{file}: 'projects' is no list of tables"),
        ("projects = [3]\n", "{file}: [[projects]] number 1 is no table"),
        ("[[projects]]\n", "{file}: [[projects]] number 1, key 'slug': Field required"),
        (
            PROJECT + '[[projects]]\nslug = "B"\npath = "b"\n',
            "{file}: [[projects]] number 2 ('B'), key 'slug': a slug has 1 to 64",
        ),
        (
            PROJECT + 'url = "https://example.org/r"\n',
            "{file}: [[projects]] number 1 ('a'): give exactly one of 'url' and 'path'",
        ),
        (
            PROJECT + 'brnach = "main"\n',
            "{file}: [[projects]] number 1 ('a'), key 'brnach': there is no such key",
        ),
        (
            PROJECT + 'scopes = { adr = ["/x"] }\n',
            "{file}: [[projects]] number 1 ('a'), key 'scopes.adr.0': a folder is named from",
        ),
        (
            PROJECT + "sessions = [{}]\n",
            (
                "{file}: [[projects]] number 1 ('a'), key 'sessions.0': give exactly one of "
                "'path' and 'query'"
            ),
        ),
        (
            PROJECT + f'credentials = {{ token = "{TOKEN}" }}\n',
            "{file}: [[projects]] number 1 ('a'), key 'credentials.token': there is no such key",
        ),
        (
            PROJECT + "credentials = {}\n",
            "{file}: [[projects]] number 1 ('a'), key 'credentials': give exactly one of 'env'",
        ),
        (
            PROJECT + PROJECT,
            "{file}: [[projects]] number 2, key 'slug': 'a' is taken by number 1. Give each",
        ),
        (
            f'[[projects]]\nslug = "a"\nurl = "https://x:{TOKEN}@git.example.com/r"\n',
            "{file}: [[projects]] number 1 ('a'), key 'url': it holds user information",
        ),
        (f'[settings]\ndatabase_url = "{TOKEN}\n', "{file} is not TOML: "),
        (b"slug = '\xff'\n", "{file} is not TOML: "),
    ],
)
def test_a_message_names_file_table_and_key(file: Path, text: str | bytes, expected: str) -> None:
    assert refusal(file, text).startswith(expected.format(file=file))


def test_a_message_tells_how_many_faults_there_are_more(file: Path) -> None:
    message = refusal(file, '[[projects]]\nslug = "A"\npath = "a"\nx = 1\ny = 2\n')
    assert message.endswith("(and 2 more)")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("database_pool", "many"),
        ("ollama_url", f"http://u:{TOKEN}@127.0.0.1:11434"),
        ("ollama_url", f"http://[{TOKEN}]@127.0.0.1"),
        ("ollama_url", TOKEN),
        ("embedding_model", TOKEN),
        ("work_pool", TOKEN),
    ],
)
def test_a_message_names_the_variable_and_never_its_value(
    file: Path, variable: str, value: str
) -> None:
    name = f"CONCORDANCE_{variable.upper()}"
    message = refusal(file, "", **{variable: value})
    assert message.startswith(f"variable {name}, key '{variable}': ")


def test_the_variable_is_blamed_where_it_overrides_the_file(file: Path) -> None:
    message = refusal(file, "[settings]\nmax_files = 3\n", max_files="0")
    assert message.startswith("variable CONCORDANCE_MAX_FILES")


def test_the_database_address_is_kept_as_a_secret(file: Path) -> None:
    found = read(file, "", database_url=f"postgresql://u:{TOKEN}@db/x")
    assert TOKEN not in repr(found)
    assert found.settings.database_url is not None
    assert TOKEN in found.settings.database_url.get_secret_value()


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith(f"{tmp_path} can't be read: ")


# --- one bad project ---------------------------------------------------------------------------


def test_a_scheme_that_is_not_allowed_is_that_projects_matter(file: Path) -> None:
    text = PROJECT + '[[projects]]\nslug = "b"\nurl = "ftp://example.org/r"\n'
    assert [p.slug for p in read(file, text).projects] == ["a", "b"]


# --- tokens ----------------------------------------------------------------------------------


def test_a_token_is_read_from_its_variable_and_kept_hidden() -> None:
    secret = read_secret({"MY_TOKEN": TOKEN}, Credentials(env="MY_TOKEN"))
    assert secret.get_secret_value() == TOKEN
    assert TOKEN not in repr(secret)


@pytest.mark.parametrize("environ", [{}, {"MY_TOKEN": ""}])
def test_a_token_that_is_not_set_is_missed_by_name(environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"variable MY_TOKEN, .* is not set"):
        read_secret(environ, Credentials(env="MY_TOKEN"))


# --- the process's environment ---------------------------------------------------------------


def test_git_sees_what_it_needs_and_nothing_else() -> None:
    given = {
        "PATH": "/bin",
        "NO_PROXY": "git.internal",
        "AWS_SECRET_ACCESS_KEY": TOKEN,
        "HOME": "/",
    }
    assert git_environment(given) == {"PATH": "/bin", "NO_PROXY": "git.internal"}
    assert set(git_adapter._PASSED_ON) <= set(GIT_VARIABLES)


def test_variables_that_are_set_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORDANCE_TEST_SET", "before")
    monkeypatch.setenv("CONCORDANCE_TEST_NEW", "x")
    monkeypatch.delenv("CONCORDANCE_TEST_NEW")
    set_process_variables({"CONCORDANCE_TEST_SET": "after", "CONCORDANCE_TEST_NEW": "new"})
    environ = process_environment()
    assert (environ["CONCORDANCE_TEST_SET"], environ["CONCORDANCE_TEST_NEW"]) == ("before", "new")


# --- writing ---------------------------------------------------------------------------------


def write(file: Path, table: str) -> Path:
    return write_projects_file({"CONCORDANCE_PROJECTS_FILE": str(file)}, table)


def test_a_first_project_makes_the_file(file: Path) -> None:
    assert write(file, PROJECT) == file
    assert file.read_text() == PROJECT
    assert [p.slug for p in read(file).projects] == ["a"]
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_what_stands_in_the_file_is_kept(file: Path) -> None:
    before = b"# our projects\r\n[settings]\r\nmax_files = 9 # enough\r\n"
    file.write_bytes(b"\xef\xbb\xbf" + before)
    write(file, PROJECT)
    assert file.read_bytes() == before.rstrip() + b"\n\n" + PROJECT.encode()
    write(file, PROJECT.replace('"a"', '"b"'))
    found = read(file)
    assert ([p.slug for p in found.projects], found.settings.max_files) == (["a", "b"], 9)


@pytest.mark.parametrize(
    ("before", "table", "expected"),
    [
        (PROJECT, PROJECT, "'a' is taken by number 1"),
        ("", '[[projects]]\nslug = "A"\npath = "a"\n', "key 'slug'"),
        ("", f'[[projects]]\nslug = "a"\nurl = "https://{TOKEN}@x.org/r"\n', "user information"),
        ("", "[[projects]\n", "is not TOML"),
        ("slug = '\udcff'", PROJECT, "is not TOML"),
        ("", PROJECT.replace("../a", "../\udcff"), "is not TOML"),
    ],
)
def test_a_bad_result_is_not_written(file: Path, before: str, table: str, expected: str) -> None:
    data = before.encode(errors="surrogateescape")
    file.write_bytes(data)
    with pytest.raises(ProjectsFileError, match=expected) as caught:
        write(file, table)
    assert TOKEN not in str(caught.value)
    assert file.read_bytes() == data
    assert [p.name for p in file.parent.iterdir()] == [file.name]


def test_the_rights_of_the_file_stay(file: Path) -> None:
    file.write_text('[settings]\ndatabase_url = "postgresql://u:p@db/x"\n')
    file.chmod(0o600)
    write(file, PROJECT)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_to_the_file_stays_a_link(file: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    real = tmp_path / "kept" / "real.toml"
    real.write_text("# kept\n")
    file.symlink_to(real)
    write(file, PROJECT)
    assert file.is_symlink()
    assert real.read_text() == "# kept\n\n" + PROJECT


def test_a_file_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "projects.toml"
    for path in (missing, tmp_path):
        with pytest.raises(ProjectsFileError, match="can't be written") as caught:
            write(path, PROJECT)
        assert str(path) in str(caught.value)
