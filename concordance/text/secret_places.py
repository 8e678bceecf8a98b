"""Places where secrets are written, whatever they are made of: commands, cookies, manifests.

What belongs here: places that a command, a file's format or a header tells. Addresses and blocks of
keys are `secret_rules`' matter, values after a name `secret_values`'.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from concordance.text.secret_placeholders import is_placeholder, is_plain
from concordance.text.secret_values import fits_quoted, is_number, is_random

Span = tuple[int, int, str]

# What a shell takes for a part of a word, without the signs of prose, tables and code around it.
_WORD: Final = r"(?:[^\s\"'`<>|;&()\\，。；、！？：「」『』（）【】《》“”‘’«»]|\\[^\snrt\"'])"
_AROUND: Final = ".,:*]}"
_QUOTED: Final = r"\"[^\"\r\n]{3,128}\"|'[^'\r\n]{3,128}'"
_PASSWORD: Final = rf"(?P<password>{_QUOTED}|(?!-){_WORD}{{3,128}})"
_USER: Final = (
    r"(?P<quote>\\{0,2}[\"'])?(?P<user>[^\s:\"'`]{0,64}):"
    rf"(?P<password>(?(quote)(?:(?!(?P=quote))[^\r\n]){{3,128}}|(?:{_QUOTED}|{_WORD}{{3,128}})))"
)
_CURL_USER: Final = re.compile(
    rf"(?<![\w-])(?:-u[ \t=]{{0,4}}|--(?:proxy-)?user[ \t=]{{1,4}}){_USER}"
)
_CURL_WINDOW: Final = 300
_COMMANDS: Final = (
    (("sshpass",), re.compile(rf"\bsshpass -p ?{_PASSWORD}")),
    (
        ("mysql", "mariadb"),
        re.compile(
            rf"\b(?:mysql\w{{0,12}}|mariadb[\w-]{{0,12}})\b[^\r\n]{{0,80}}? -p(?!assword)"
            rf"{_PASSWORD}"
        ),
    ),
    (
        ("docker", "podman", "nerdctl", "helm", "az", "oc", "buildah", "skopeo", "crane"),
        re.compile(
            r"\b(?:docker|podman|nerdctl|helm registry|az|oc|buildah|skopeo|crane(?: auth)?)"
            r" login\b"
            rf"[^\r\n|;&]{{0,160}}? -p[ =]{_PASSWORD}"
        ),
    ),
    (("sqlcmd", "bcp"), re.compile(rf"\b(?:sqlcmd|bcp)\b[^\r\n|;&]{{0,160}}? -P ?{_PASSWORD}")),
    (
        ("htpasswd",),
        re.compile(
            rf"\bhtpasswd (?:-[a-zA-Z]{{1,8}} ){{0,4}}-[a-zA-Z]{{0,6}}b[a-zA-Z]{{0,6}} "
            rf"(?:[^\s-]\S{{0,120}} )?(?!-)\S{{1,64}} {_PASSWORD}"
        ),
    ),
    (
        ("chpasswd",),
        re.compile(
            r"\b(?:echo|printf)[ \t](?:-\w[ \t])?[\"']?[\w.-]{1,32}:"
            r"(?P<password>[^\s\"'`|\\]{3,128})(?:\\n)?[\"']?[ \t]{0,4}\|[^\r\n|]{0,40}\bchpasswd"
        ),
    ),
    (
        ("assword for", "assword of", "ASSWORD FOR"),
        re.compile(
            r"(?i)\bpassword (?:for|of)(?: [\w.@/`'-]{1,40}){1,4}?"
            r"(?: is| was)?(?::|(?<=is)|(?<=was))[ \t]{1,4}[`\"'*]{0,2}"
            r"(?P<password>(?!(?:base|sha|md|utf|aes)-?[0-9])(?=[^\s\"'`*<>]{0,60}[0-9])"
            r"(?=[^\s\"'`*<>]{0,60}[a-z])[^\s\"'`*<>(),;]{8,128})"
        ),
    ),
    (("redis-cli",), re.compile(rf"\bredis-cli\b[^\r\n]{{0,80}}? -a {_PASSWORD}")),
    (("REDISCLI_AUTH",), re.compile(rf"\bREDISCLI_AUTH={_PASSWORD}")),
    (
        ("requirepass", "masterauth"),
        re.compile(rf"\b(?:requirepass|masterauth)[ \t]{{1,4}}{_PASSWORD}"),
    ),
    (("pass:",), re.compile(rf"-pass(?:in|out|word)?[ \t]{{1,4}}pass:{_PASSWORD}")),
    (
        ("--password-stdin",),
        re.compile(
            rf"\b(?:echo|printf)[ \t](?:-n[ \t])?{_PASSWORD}[ \t]{{0,4}}\|"
            r"[^\r\n|]{0,120}--password-stdin"
        ),
    ),
    (("http",), re.compile(rf"\bhttps?[ \t][^\r\n]{{0,80}}?(?:-a|--auth)[ \t=]{_USER}")),
    (
        ("oracle:thin", "sqlplus"),
        re.compile(
            r"(?:jdbc:oracle:thin:|\bsqlplus[ \t](?:-\w+[ \t])?)[\w$#]{1,64}/"
            r"(?P<password>[^\s@/\"'`<>]{3,128})@"
        ),
    ),
    (
        ("ConvertTo-SecureString",),
        re.compile(
            rf"ConvertTo-SecureString[ \t](?:-String[ \t])?(?P<password>{_QUOTED})"
            r"(?=[^\r\n]{0,80}-AsPlain)"
        ),
    ),
    (
        ("login",),
        re.compile(
            r"\b(?:machine\s{1,20}\S{1,253}|default)\s{1,20}login\s{1,20}\S{1,128}"
            r"\s{1,20}password\s{1,20}(?P<password>[^\s`\"'<]{3,128})"
        ),
    ),
)
_COOKIE: Final = re.compile(
    r"(?i)\bcookie[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<jar>[^\r\n\"'`]{16,4096})"
)
_CRUMB: Final = re.compile(
    r"(?i)(?<![\w.-])[\w.%-]{0,40}(?:sess|sid|auth|token|jwt|csrf|xsrf|remember|login)[\w.%-]{0,40}"
    r"=(?P<value>[\w.%+/=~-]{16,4096})"
)
_SESSION: Final = re.compile(
    r"\b(?:PHPSESSID|JSESSIONID|ASP\.NET_SessionId|connect\.sid|laravel_session|_session_id"
    r"|sessionid|csrftoken)=[\"']?(?P<value>[\w.%+/=~-]{16,4096})"
)
_SESSIONS: Final = ("sessid=", "sessionid=", "connect.sid=", "_session", "csrftoken=")
_AUTH: Final = re.compile(
    r"(?i)(?<![a-z-])_?auth[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<value>[a-z0-9+/]{8,1024}={0,2})"
)
_LOGIN: Final = re.compile(r"[\w.@+-]{1,128}:[\x20-\x7e]{3,512}", re.ASCII)
_TERRAFORM: Final = re.compile(
    r"\bvariable[ \t]{1,4}\"(?P<name>[^\"\r\n]{1,80})\"[ \t]{0,4}\{[^}]{0,600}?"
    r"\bdefault[ \t]{0,40}=[ \t]{0,4}\"(?P<value>[^\"\r\n]{4,256})\""
)
_NAME: Final = re.compile(r"(?i)passw|passphrase|pwd|secret|token|key|credential")
_BLOCK: Final = re.compile(
    r"(?im)^(?P<indent>[ \t]{0,80})(?:-[ \t])?[\"']?[\w.-]{0,60}"
    r"(?:passw(?:or[dt])|passwd|passphrase|pwd|secret|token|key|credentials?)[\w.-]{0,20}[\"']?:"
    r"[ \t]{1,8}[|>][+-]?[0-9]?[ \t]{0,40}(?:\r\n?|\n)"
)
_MANIFEST: Final = re.compile(r"(?m)^[ \t>]{0,40}(?:-[ \t])?kind:[ \t]{0,8}[\"']?Secret\b")
_MANIFEST_JSON: Final = re.compile(r"\"kind\"\s{0,4}:\s{0,4}\"Secret\"")
_EDGE: Final = re.compile(r"(?m)^[ \t>]{0,40}(?:---|\.\.\.|```|~~~)")
_REACH: Final = 20_000
_DATA: Final = re.compile(
    r"(?m)^(?P<indent>[ \t>]{0,80})(?:data|stringData):[ \t]{0,40}(?:\r\n?|\n)"
)
_DATA_JSON: Final = re.compile(
    r"\"(?:data|stringData)\"\s{0,4}:\s{0,4}\{(?P<pairs>[^{}]{0,20000})\}"
)
_LINE: Final = re.compile(r"(?P<indent>[ \t>]{0,200})(?P<rest>[^\r\n]*)(?:\r\n?|\n|\Z)")
_ENTRY: Final = re.compile(
    r"[\"']?[\w.-]{1,253}[\"']?:[ \t]{1,8}[\"']?(?P<value>[^\s\"']{4,}+)[\"']?(?:[ \t]+#.*)?\Z"
)
_PAIR: Final = re.compile(r"\"[\w.-]{1,253}\"\s{0,4}:\s{0,4}\"(?P<value>[^\s\"\\]{4,})\"")


def placed_secrets(text: str) -> Iterator[Span]:
    """Spans of the secrets that their place tells, with their kinds."""
    yield from _commands(text)
    yield from _curl(text)
    yield from _cookies(text)
    yield from _logins(text)
    yield from _variables(text)
    yield from _blocks(text)
    yield from _manifests(text)


def _commands(text: str) -> Iterator[Span]:
    for needles, pattern in _COMMANDS:
        if any(needle in text for needle in needles):
            for match in pattern.finditer(text):
                yield from _password(match, "password")


def _curl(text: str) -> Iterator[Span]:
    if "curl" not in text:
        return
    for match in _CURL_USER.finditer(text):
        before = text[max(0, match.start() - _CURL_WINDOW) : match.start()]
        if "curl" in before.rpartition("\n\n")[2]:
            yield from _password(match, "basic auth")


def _password(match: re.Match[str], kind: str) -> Iterator[Span]:
    """The password of a command, without quotes and without what stands around the command."""
    start, value = match.start("password"), match["password"]
    if value[0] in "\"'" and value[-1] == value[0]:
        start, value = start + 1, value[1:-1]
    elif match.end("password") == match.end():
        value = value if _is_quoted(match) else value.rstrip(_AROUND)
    if value and not is_plain(value) and not is_number(value):
        yield start, start + len(value), kind


def _is_quoted(match: re.Match[str]) -> bool:
    return "quote" in match.re.groupindex and match["quote"] is not None


def _cookies(text: str) -> Iterator[Span]:
    lowered = text.lower()
    if "cookie" in lowered:
        for jar in _COOKIE.finditer(text):
            for crumb in _CRUMB.finditer(text, jar.start("jar"), jar.end("jar")):
                if is_random(crumb["value"], 16):
                    yield *crumb.span("value"), "session cookie"
    if not any(name in lowered for name in _SESSIONS):
        return
    for match in _SESSION.finditer(text):
        if is_random(match["value"], 16):
            yield *match.span("value"), "session cookie"


def _logins(text: str) -> Iterator[Span]:
    """`auth` of Docker's configuration and `_auth` of npm's: a name and a password in base64."""
    if "auth" not in text.lower():
        return
    for match in _AUTH.finditer(text):
        told = _decoded(match["value"])
        if told is not None and _LOGIN.fullmatch(told) and not is_plain(told.partition(":")[2]):
            yield *match.span("value"), "basic auth"


def _decoded(value: str) -> str | None:
    """What base64 holds, as characters of one byte."""
    try:
        return base64.b64decode(value, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return None


def _variables(text: str) -> Iterator[Span]:
    """Defaults of Terraform's variables."""
    if "default" not in text:
        return
    for match in _TERRAFORM.finditer(text):
        if _NAME.search(match["name"]) and fits_quoted(match["value"], match["name"]):
            yield *match.span("value"), "secret value"


def _blocks(text: str) -> Iterator[Span]:
    """Lines of one word each in a block of YAML that stands under a secret's name."""
    if ": |" not in text and ": >" not in text:
        return
    for match in _BLOCK.finditer(text):
        for start, end in _deeper(text, match.end(), len(match["indent"])):
            if is_random(text[start:end], 8) and not is_placeholder(text[start:end]):
                yield start, end, "secret value"


def _deeper(text: str, position: int, indent: int) -> Iterator[tuple[int, int]]:
    """Lines that are indented more: where their text begins and ends."""
    end = min(len(text), position + _REACH)
    while position < end and (line := _LINE.match(text, position)) is not None:
        rest = line["rest"].rstrip()
        if rest and len(line["indent"]) <= indent:
            return
        if rest:
            start = line.start("rest")
            yield start, start + len(rest)
        position = max(line.end(), position + 1)


def _manifests(text: str) -> Iterator[Span]:
    """Values of Kubernetes' Secrets, in base64 or plain."""
    if "Secret" in text and "ata" in text:
        yield from _manifests_of_yaml(text)
        yield from _manifests_of_json(text)


def _manifests_of_yaml(text: str) -> Iterator[Span]:
    covered = 0
    for kind in _MANIFEST.finditer(text):
        if kind.start() < covered:
            continue
        edges = list(_EDGE.finditer(text, max(covered, kind.start() - _REACH), kind.start()))
        start = edges[-1].end() if edges else max(covered, kind.start() - _REACH)
        after = _EDGE.search(text, kind.end(), kind.end() + _REACH)
        covered = after.start() if after else min(len(text), kind.end() + _REACH)
        for data in _DATA.finditer(text, start, covered):
            for at, end in _deeper(text, data.end(), len(data["indent"])):
                entry = _ENTRY.match(text, at, end)
                if entry is not None and _is_kept(entry["value"]):
                    yield *entry.span("value"), "kubernetes secret"


def _manifests_of_json(text: str) -> Iterator[Span]:
    covered = 0
    for kind in _MANIFEST_JSON.finditer(text):
        start = max(covered, kind.start() - _REACH)
        covered = max(covered, kind.end() + _REACH)
        for data in _DATA_JSON.finditer(text, start, covered):
            for pair in _PAIR.finditer(text, data.start("pairs"), data.end("pairs")):
                if _is_kept(pair["value"]):
                    yield *pair.span("value"), "kubernetes secret"


def _is_kept(value: str) -> bool:
    """Whether a value of a Secret is one: base64, or made like a password."""
    if is_placeholder(value):
        return False
    told = _decoded(value) if len(value) % 4 == 0 else None
    if told is not None:
        return not is_placeholder(told)
    return fits_quoted(value, "password")
