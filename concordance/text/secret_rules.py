"""What a secret looks like: the formats of issuers, and the places where secrets are written.

What belongs here: rules, as spans of a text. What becomes of a span is `scrubbing`'s matter; values
that follow a name such as `password` are judged in `secret_values`.

Each rule begins with a word that must stand in the text, and has bounds or possessive repeats, so
that no text takes longer than its length allows.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from concordance.text.secret_values import assigned_values, is_placeholder


@dataclass(frozen=True, slots=True)
class Found:
    """A secret at `text[start:end]`; `kind` says in words what it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Format:
    """A format that tells by itself what it is; `needles` are words of which one must be there."""

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


# Where no letter or digit stands before it, but for those of an escape or of a percent code.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?<=\\[abfnrtv])|(?<=%[0-9A-Fa-f]{2}))"


def _format(kind: str, needles: str, pattern: str) -> _Format:
    """A format that begins at `_START`."""
    return _Format(kind, tuple(needles.split()), re.compile(rf"{_START}(?:{pattern})"))


_FORMATS: Final = (
    _format(
        "aws access key",
        "AKIA ASIA ABIA ACCA A3T",
        r"(?:A[KSB]IA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _format("gcp api key", "AIza", r"AIza[\w-]{35}"),
    _format("gcp oauth secret", "GOCSPX-", r"GOCSPX-[\w-]{20,40}"),
    _format("gcp access token", "ya29.", r"ya29\.[\w-]{20,2048}+"),
    _format("azure client secret", "Q~", r"[\w~.]{3}[0-9]Q~[\w~.-]{31,34}"),
    _format("azure storage key", "AccountKey=", r"AccountKey=(?P<key>[A-Za-z0-9+/]{43,88}={0,2})"),
    _format(
        "azure shared access key",
        "SharedAccessKey=",
        r"SharedAccessKey=(?P<key>[A-Za-z0-9+/]{40,88}={0,2})",
    ),
    _format("azure signature", "sig=", r"sig=(?P<key>[A-Za-z0-9%+/]{40,120}(?:%3[Dd]|=))"),
    _format(
        "github token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        r"(?:gh[pousr]_[A-Za-z0-9]{16,255}+|github_pat_\w{20,255}+)",
    ),
    _format(
        "gitlab token",
        "glpat- gldt- glrt- gloas- glptt- glcbt- glsoat- glft- glimt- glagent- glffct- GR1348941",
        r"(?:gl(?:pat|dt|rt|oas|ptt|cbt|soat|ft|imt|agent|ffct)-|GR1348941)[\w-]{16,255}+"
        r"(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
    ),
    _format(
        "slack token",
        "xoxa xoxb xoxe xoxo xoxp xoxr xoxs xapp xoxc xoxd",
        r"(?:xox[abcdeoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9%+/=-]{10,512}+",
    ),
    _format(
        "slack webhook",
        "hooks.slack.com",
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,120}+",
    ),
    _format(
        "discord webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,120}"
    ),
    _format(
        "teams webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/[\w@/-]{40,400}+"
    ),
    _format(
        "stripe key",
        "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_ whsec_",
        r"(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,255}+|whsec_[A-Za-z0-9+/=]{24,255}+)",
    ),
    _format("npm token", "npm_", r"npm_[A-Za-z0-9]{30,255}+"),
    _format(
        "npm token", "_authToken", r"_authToken[ \t]{0,4}=[ \t]{0,4}(?P<key>[\w+/=-]{16,512}+)"
    ),
    _format("pypi token", "pypi-", r"pypi-[\w-]{50,2048}+"),
    _format("hugging face token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,255}+"),
    _format("sendgrid key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}+"),
    _format("twilio key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _format("telegram token", ":AA", r"[0-9]{8,12}:AA[\w-]{32,34}(?![A-Za-z0-9])"),
    _format("digitalocean token", "do_v1_ dop_v1_ dor_v1_ doo_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _format("shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}"),
    _format("databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    _format("vault token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{20,512}+"),
    _format("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}"),
    _format("linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,64}+"),
    _format("notion token", "ntn_", r"ntn_[A-Za-z0-9]{40,64}+"),
    _format("figma token", "figd_", r"figd_[\w-]{36,64}+"),
    _format(
        "grafana token",
        "glsa_ glc_",
        r"(?:glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|glc_[\w+/=]{32,400}+)",
    ),
    _format(
        "sentry token", "sntrys_ sntryu_", r"(?:sntryu_[0-9a-f]{64}|sntrys_[\w+/=.-]{60,400}+)"
    ),
    _format("docker token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{27,64}+"),
    _format("rubygems key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _format("postman key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _format("new relic key", "NRAK- NRJS-", r"NR(?:AK|JS)-[A-Za-z0-9]{19,32}"),
    _format("atlassian token", "ATATT3 ATCTT3", r"AT[AC]TT3[\w=-]{60,512}+"),
    _format("tailscale key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{16,120}+"),
    _format(
        "model provider key",
        "gsk_ xai- pplx- nvapi- r8_ tgp_v1_ fw_",
        r"(?:gsk_|xai-|pplx-|nvapi-|r8_|tgp_v1_|fw_)[\w-]{24,255}+",
    ),
    _format("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _format("1password token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=]{100,4096}+"),
    # The signature may be cut off, as it is where a log cuts its lines.
    _format(
        "jwt",
        "eyJ",
        r"eyJ[\w-]{10,8192}+\.eyJ[\w-]{6,8192}+(?:\.[\w-]{0,8192}+)?",
    ),
)
_SK: Final = re.compile(_START + r"sk-(?P<issuer>[a-z]+[0-9]{0,2}-)?[\w-]{18,400}+")
_SK_DIGITS: Final = 4
_SK_RUN: Final = 16
_SK_KINDS: Final = {"ant-": "anthropic key", "proj-": "openai key", "svcacct-": "openai key"}

_PIECE: Final = r"[A-Za-z0-9+/=]"
_GAP: Final = r"(?:\\+[nrt]|[\s\"',;#*|>+\\])"
_KEY_HEADER: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"|PuTTY-User-Key-File-[23]:|Private-Lines: \d{1,4}"
)
_KEY_LINES: Final = re.compile(
    rf"(?:{_GAP}{{0,80}}(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Encryption):"
    r"[^\r\n\\]{0,200})*+"
    rf"(?P<body>(?:{_GAP}{{0,80}}+{_PIECE}{{16,}}+)++)"
    rf"(?:{_GAP}{{0,80}}+{_PIECE}{{1,15}}+"
    rf"(?:(?<=[0-9+/=])(?=[\r\n\"'\\]|$)|(?={_GAP}{{0,80}}-----END )))?"
)
_KEY_END: Final = re.compile(
    rf"{_GAP}{{0,80}}-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----"
)
# The end of a block whose beginning is not there: whole lines of what a key is written in.
_KEY_TAIL: Final = re.compile(
    r"(?:(?:^|(?<=\\n))[ \t>#*|\"']{0,20}[A-Za-z0-9+/]{20,100}={0,2}[ \t\"',\\]{0,4}"
    r"(?:\r\n?|\n|\\r|\\n|(?=n))n?){1,400}+"
    r"[ \t>#*|\"']{0,20}(?:[A-Za-z0-9+/]{1,76}={0,2}(?:\r\n?|\n|\\n))?"
    r"[ \t>#*|\"']{0,20}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    re.MULTILINE,
)
_URL_PASSWORD: Final = re.compile(
    r"(?<=://)(?P<user>[^\s/?#:@\"'`<>|]{0,128})"
    r":(?P<password>[^\s/?#\"'`<>\[\]]{1,256}?)@(?=[^\s@/]{1,255}(?:[\s/?#:,;\"'`<>)]|$))"
)
_HEADER: Final = re.compile(
    r"(?i)\b(?P<scheme>basic|bearer|token)[ \t]{1,4}(?P<value>[A-Za-z0-9+/._~=-]{8,4096}+)"
)
_CURL_USER: Final = re.compile(
    r"(?<!\S)(?:-u|--user|--proxy-user)[ \t=]{1,4}[\"']?"
    r"(?P<user>[^\s:\"']{0,64}):(?P<password>[^\s\"']{3,128})"
)
_CURL_WINDOW: Final = 300
_COMMAND_PASSWORD: Final = re.compile(
    r"(?:\bsshpass -p ?|\b(?:mysql|mysqldump|mariadb)\b[^\r\n]{0,80}? -p"
    r"|\bredis-cli\b[^\r\n]{0,80}? -a )"
    r"[\"']?(?P<password>[^\s\"'-][^\s\"']{2,128})"
)
_SHORTEST_BEARER: Final = 16


def find_secrets(text: str) -> Iterator[Found]:
    """Every secret that the rules know; of overlapping ones the earlier says better what it is."""
    yield from _private_keys(text)
    for form in _FORMATS:
        if any(needle in text for needle in form.needles):
            for match in form.pattern.finditer(text):
                start = match.start("key" if "key" in form.pattern.groupindex else 0)
                if not _is_filler(text[start : match.end()]):
                    yield Found(start, match.end(), form.kind)
    yield from _sk_keys(text)
    yield from _url_passwords(text)
    yield from _headers(text)
    yield from _commands(text)
    for start, end, kind in assigned_values(text):
        yield Found(start, end, kind)


def _is_filler(value: str) -> bool:
    """Whether the end of a value shows that it only stands for one: `ghp_xxxxxxxx`."""
    return len(set(value[-10:].lower())) == 1 and value[-1] in "xX*.0_-"


def _private_keys(text: str) -> Iterator[Found]:
    """Whole and cut blocks, on lines or in one string with escaped line ends."""
    covered = 0
    if "PRIVATE KEY" in text or "Private-Lines" in text or "PuTTY-User-Key" in text:
        for header in _KEY_HEADER.finditer(text):
            lines = _KEY_LINES.match(text, header.end())
            if lines is not None and not _is_filler(lines["body"].strip("\"'\\ \r\n")):
                end = _KEY_END.match(text, lines.end())
                covered = lines.end() if end is None else end.end()
                yield Found(header.start(), covered, "private key")
    if "-----END " in text:
        for tail in _KEY_TAIL.finditer(text, covered):
            yield Found(tail.start(), tail.end(), "private key")


def _sk_keys(text: str) -> Iterator[Found]:
    """Keys of OpenAI's form, which many others took over; a name of words and dashes is none."""
    if "sk-" not in text:
        return
    for match in _SK.finditer(text):
        body = match[0][3:]
        digits = sum(c.isdigit() for c in body)
        mixed = any(c.isupper() for c in body) and any(c.islower() for c in body)
        run = max(map(len, re.split("[_-]", body)))
        told = bool(digits) and (mixed or digits >= _SK_DIGITS) and run >= _SK_RUN
        if told and not _is_filler(body):
            kind = _SK_KINDS.get(match["issuer"] or "", "model provider key")
            yield Found(match.start(), match.end(), kind)


def _url_passwords(text: str) -> Iterator[Found]:
    if "://" not in text or "@" not in text:
        return
    for match in _URL_PASSWORD.finditer(text):
        password = match["password"]
        if not is_placeholder(password, words=("pass", "password", "passwd", "pwd", "pw")):
            yield Found(match.start("password"), match.end("password"), "url password")


def _headers(text: str) -> Iterator[Found]:
    lowered = text.lower()
    if not any(word in lowered for word in ("basic", "bearer", "token")):
        return
    for match in _HEADER.finditer(text):
        value, scheme = match["value"].rstrip(".-"), match["scheme"].lower()
        end = match.start("value") + len(value)
        if scheme == "basic" and _is_basic(value):
            yield Found(match.start("value"), end, "basic auth")
        if scheme != "basic" and len(value) >= _SHORTEST_BEARER and _is_random(value):
            yield Found(match.start("value"), end, "bearer token")


def _is_basic(value: str) -> bool:
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_random(value: str) -> bool:
    longest = max(map(len, re.split(r"[._~-]", value)))
    return (
        any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and longest >= 10  # noqa: PLR2004 - a word with a number is shorter
        and not _is_filler(value)
    )


def _commands(text: str) -> Iterator[Found]:
    if any(command in text for command in ("sshpass", "mysql", "mariadb", "redis-cli")):
        for match in _COMMAND_PASSWORD.finditer(text):
            if not is_placeholder(match["password"], words=("pass", "password", "passwd")):
                yield Found(match.start("password"), match.end("password"), "password")
    if "curl" not in text:
        return
    for match in _CURL_USER.finditer(text):
        before = text[max(0, match.start() - _CURL_WINDOW) : match.start()]
        asked = "curl" in before.rpartition("\n\n")[2]
        if asked and not is_placeholder(match["password"], words=("pass", "password", "passwd")):
            yield Found(match.start("password"), match.end("password"), "basic auth")
