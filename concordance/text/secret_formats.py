"""Keys that tell by their format what they are: the formats of issuers.

What belongs here: formats that need no word beside them. Places where secrets are written are
`secret_rules`' matter.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


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
    _format("notion token", "secret_", r"secret_[A-Za-z0-9]{43}(?![A-Za-z0-9_-])"),
    _format("mailchimp key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    _format(
        "planetscale key",
        "pscale_",
        r"pscale_(?:tkn|pw|oauth)_[\w=.-]{31,63}[\w=]",
    ),
    _format(
        "square key",
        "sq0csp- sq0atp- EAAA",
        r"(?:sq0csp-[\w-]{43}|sq0atp-[\w-]{22}|EAAA[\w-]{60})(?![\w-])",
    ),
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
        "gsk_ xai- pplx- nvapi- r8_ tgp_v1_",
        r"(?:gsk_|xai-|pplx-|nvapi-|r8_|tgp_v1_)[\w-]{24,255}+",
    ),
    _format("age key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _format("1password token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9+/=]{100,4096}+"),
    _format("google refresh token", "1//0", r"1//0[\w-]{40,200}+"),
    _format("supabase key", "sb_secret_ sbp_", r"(?:sb_secret_[\w-]{20,64}+|sbp_[0-9a-f]{40})"),
    _format("cloudflare key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    _format("model provider key", "fw_", r"fw_[A-Za-z0-9]{20,64}+(?![\w-])"),
    _format("crates token", "cio", r"cio[A-Za-z0-9]{32}(?![\w-])"),
    _format("facebook token", "EAA", r"EAA[A-Z][A-Za-z0-9]{76,400}+(?![\w/+=])"),
    _format(
        "braintree token",
        "access_token$",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
    ),
    _format("laravel key", "base64:", r"base64:(?P<key>[A-Za-z0-9+/]{43}=)(?![A-Za-z0-9+/=])"),
    _format("vercel token", "vcp_", r"vcp_[A-Za-z0-9]{24,64}+(?![\w-])"),
    _format("heroku key", "HRKU-", r"HRKU-[\w-]{36,80}+"),
    _format("airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _format("langsmith key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
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


# Its first letter stands first, as the search for it is ten times faster so.
_DISCORD: Final = re.compile(
    r"(?P<id>[MNO](?:(?<![A-Za-z0-9].)|(?<=\\[abfnrtv].)|(?<=%[0-9A-Fa-f]{2}.))[A-Za-z0-9]{22,27})"
    r"\.[\w-]{6}\.[\w-]{27,40}(?![\w-])"
)


# AWS shows a secret beside its key's id or below its name, in files of CSV, tables and terminals.
_AWS_NAMED: Final = re.compile(
    r"(?:A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])|\[secret: aws access key\]"
    r"|(?i:secret[ _-]?access[ _-]?key))"
)
_AWS_NEEDLES: Final = ("AKIA", "ASIA", "aws access key", "ecret", "ECRET")
_AWS_SECRET: Final = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_AWS_REACH: Final = 400
_AWS_LINES: Final = re.compile(r"[^\r\n]*+(?:(?:\r\n?|\n)[^\r\n]*+){0,3}")


def formatted(text: str) -> Iterator[tuple[int, int, str]]:
    """Spans of the keys that a format tells, with their kinds."""
    for form in _FORMATS:
        if any(needle in text for needle in form.needles):
            for match in form.pattern.finditer(text):
                start = match.start("key" if "key" in form.pattern.groupindex else 0)
                if not is_filler(text[start : match.end()]):
                    yield start, match.end(), form.kind
    yield from _sk_keys(text)
    yield from _aws_secrets(text)
    for match in _DISCORD.finditer(text):
        # Its first part is the number of a user, in base64.
        number = match["id"][: len(match["id"]) // 4 * 4]
        if base64.b64decode(number).isdigit():
            yield match.start("id"), match.end(), "discord token"


def is_filler(value: str) -> bool:
    """Whether the end of a value shows that it only stands for one: `ghp_xxxxxxxx`."""
    return len(set(value[-10:].lower())) == 1 and value[-1] in "xX*.0_-"


def _aws_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    """Words of 40 characters of base64 on the line of a key's id or of the name, or below it."""
    if not any(needle in text for needle in _AWS_NEEDLES):
        return
    covered = 0
    for named in _AWS_NAMED.finditer(text):
        near = _AWS_LINES.match(text, named.end(), named.end() + _AWS_REACH)
        start = max(covered, named.end())
        covered = max(covered, named.end() if near is None else near.end())
        for match in _AWS_SECRET.finditer(text, start, covered):
            signs = match[0]
            mixed = any(c.isupper() for c in signs) and any(c.islower() for c in signs)
            if mixed and any(c.isdigit() for c in signs) and not is_filler(signs):
                yield *match.span(), "aws secret key"


def _sk_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """Keys of OpenAI's form, which many others took over; a name of words and dashes is none."""
    if "sk-" not in text:
        return
    for match in _SK.finditer(text):
        body = match[0][3:]
        digits = sum(c.isdigit() for c in body)
        mixed = any(c.isupper() for c in body) and any(c.islower() for c in body)
        run = max(map(len, re.split("[_-]", body)))
        told = bool(digits) and (mixed or digits >= _SK_DIGITS) and run >= _SK_RUN
        if told and not is_filler(body):
            kind = _SK_KINDS.get(match["issuer"] or "", "model provider key")
            yield match.start(), match.end(), kind
