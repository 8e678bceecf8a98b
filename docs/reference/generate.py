"""Makes the reference from the code: commands, settings, types, SQL functions, HTTP.

    make reference

What belongs here: how what the code says of itself is written down. What is said stands with the
code; a test tells where a page is not what the code says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel

FOLDER = Path(__file__).parent
NOTE = "<!-- Made by `make reference` from the code: change it there. -->\n\n"
SETTINGS = (
    "Each is a variable, or a key of `[settings]` in `projects.toml` in lower case and without the "
    "prefix. A variable wins over the file, and an empty variable counts as not set.\n"
)
TYPES = (
    "All are of `concordance.models`. What the fields of an answer mean at length: "
    "[answer.md](../answer.md); those of coverage: [coverage.md](../coverage.md).\n"
)
FUNCTIONS = (
    "Of the schema `concordance`, for the logins of readers. Examples, and what each is for: "
    "[tenants.md](../tenants.md).\n"
)
FUNCTION = re.compile(
    r"^create (?:or replace )?function (reader_\w+)\((.*?)\)\s+returns (.*?)\s+language \w+",
    re.MULTILINE | re.DOTALL,
)


def pages() -> dict[str, str]:
    """Every page of the reference by its file's name."""
    return {
        "commands.md": commands(),
        "settings.md": settings(),
        "types.md": types(),
        "sql.md": sql(),
        "openapi.json": openapi(),
    }


def commands() -> str:
    """Each command with its arguments, as `--help` has them."""
    from concordance.cli.app import app  # noqa: PLC0415 - loading takes its time

    made = app.generate_docs(usage_name="concordance")
    # Groups of commands are called by the name of whatever program runs this.
    lines = (
        re.sub(r"^(concordance .*?) -m \S+", r"\1", line.rstrip()) for line in made.splitlines()
    )
    return NOTE + "\n".join(lines).replace("# concordance\n", "# Commands\n", 1).rstrip() + "\n"


def settings() -> str:
    """Variables, and keys of projects.toml."""
    from concordance import settings as known  # noqa: PLC0415 - likewise

    parts = [
        "# Settings\n",
        SETTINGS,
        _table(known.Settings, lambda name: f"CONCORDANCE_{name.upper()}"),
        "\n## projects.toml\n",
        "Keys of `[[projects]]`.\n",
        _table(known.Project),
    ]
    for title, model in (
        ("credentials", known.Credentials),
        ("scopes", known.ScopeRules),
        ("sessions", known.SessionSource),
    ):
        parts += [f"\n### {title}\n", f"{_first_line(model)}\n", _table(model)]
    parts += [
        "\n## The keys file\n",
        "Keys of `[[keys]]` in the file that `CONCORDANCE_HTTP_KEYS_FILE` names.\n",
        _table(known.HttpKey),
        f"\n### login\n\n{_first_line(known.LoginSource)}\n",
        _table(known.LoginSource),
    ]
    return NOTE + "\n".join(parts)


def types() -> str:
    """What is asked and answered in Python, over HTTP and by `--json`."""
    from concordance import models  # noqa: PLC0415 - likewise

    told = (
        models.SearchRequest,
        models.Answer,
        models.Hit,
        models.FileOrigin,
        models.SessionOrigin,
        models.RecordState,
        models.RecordName,
        models.ScopeFreshness,
        models.ScopeCoverage,
        models.Explanation,
    )
    parts = [
        "# Types\n",
        TYPES,
    ]
    for model in told:
        asked = model is models.SearchRequest
        table = _table(model, defaults=asked)
        parts += [f"## {model.__name__}\n", f"{_first_line(model)}\n", table, ""]
    parts.append("## Values\n")
    enums = (
        models.Scope,
        models.Fusion,
        models.LexicalRanking,
        models.DocumentStatus,
        models.AdrStatus,
        models.CoverageState,
    )
    rows = [f"| `{e.__name__}` | {', '.join(f'`{v.value}`' for v in e)} |" for e in enums]
    return NOTE + "\n".join([*parts, "| type | values |", "|---|---|", *rows]) + "\n"


def sql() -> str:
    """The functions of a reader's login, as the newest migration that makes each has them."""
    from sql import migrations  # noqa: PLC0415 - likewise

    found: dict[str, tuple[str, str]] = {}
    for migration in migrations():
        for name, arguments, returns in FUNCTION.findall(migration.text):
            found[name] = (_one_line(arguments), _one_line(returns))
    parts = [
        "# SQL functions\n",
        FUNCTIONS,
    ]
    for name, (arguments, returns) in sorted(found.items()):
        rows = returns.removeprefix("table (").removesuffix(")")
        parts.append(f"## {name}\n")
        parts += [f"- `{one}`" for one in _split(arguments)] or ["No argument."]
        parts.append(f"\nReturns {'rows of ' if rows != returns else ''}`{rows}`.\n")
    return NOTE + "\n".join(parts).rstrip() + "\n"


def openapi() -> str:
    """The description of the HTTP interface."""
    from concordance.http.app import make_app  # noqa: PLC0415 - likewise
    from concordance.http.bodies import StartedRun  # noqa: PLC0415 - likewise
    from concordance.http.callers import Callers  # noqa: PLC0415 - likewise
    from concordance.settings import Settings  # noqa: PLC0415 - likewise

    def nothing(*_: object) -> StartedRun:
        raise AssertionError("nothing is asked")

    app = make_app(
        Callers({}), Settings(home=Path("unused")), nothing, version=version("concordance")
    )
    return json.dumps(app.openapi(), indent=2, sort_keys=True) + "\n"


def _table(
    model: type[BaseModel], naming: Callable[[str], str] = str, *, defaults: bool = True
) -> str:
    """The fields of a model; what is given has defaults, what is answered has none."""
    schema = model.model_json_schema(mode="serialization")
    head = ["name", "type", *(["default"] if defaults else []), "meaning"]
    rows = [head, ["---"] * len(head)]
    for name, field in schema["properties"].items():
        default = [_default(field, name, schema)] if defaults else []
        told = _one_line(field.get("description", "")).replace("|", "\\|")
        rows.append([f"`{naming(name)}`", _type(field), *default, told])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _type(field: Mapping[str, Any]) -> str:
    """A type with its bounds, in words: `integer, 1 to 200`."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(one) for one in field["anyOf"]))
    if "oneOf" in field:
        return " or ".join(_type(one) for one in field["oneOf"])
    if "$ref" in field:
        return f"`{field['$ref'].rsplit('/', 1)[-1]}`"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{one}`" for one in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        kind = f"list of {_type(field.get('items', {}))}"
    elif kind == "object":
        kind = f"map to {_type(field.get('additionalProperties', {}))}"
    elif kind == "string" and field.get("format"):
        kind = {"date-time": "time", "password": "secret"}.get(field["format"], field["format"])
    return ", ".join([kind, *_bounds(field)])


def _bounds(field: Mapping[str, Any]) -> Iterator[str]:
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}"
    elif low is not None:
        yield f"at least {low:,}"
    elif high is not None:
        yield f"at most {high:,}" if "exclusiveMinimum" not in field else f"up to {high:,}"
    if "exclusiveMinimum" in field:
        yield f"more than {field['exclusiveMinimum']:g}"


def _default(field: Mapping[str, Any], name: str, schema: Mapping[str, Any]) -> str:
    if name in schema.get("required", ()) and "default" not in field:
        return "the user's" if name == "home" else "required"
    default = field.get("default")
    if default is None or default in ([], {}):
        return "none"
    if isinstance(default, dict):
        return "see below"
    if isinstance(default, list):
        return ", ".join(f"`{one}`" for one in default)
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _split(arguments: str) -> list[str]:
    return [one.strip() for one in arguments.split(",") if one.strip()]


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
