"""Names that tell of a secret, in code, in configuration and in the languages of documentation.

What belongs here: the names, and the signs that give one a value. Which values are secrets is
judged in `secret_values`.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 128
"""What a value is judged by; what is longer is taken whole once it is judged."""

# Words for a password and for a key or token. Those that mean much else are left out.
_FOREIGN_PASSWORDS: Final = [
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "패스워드",
    "암호",
    "пароль",
    "пароля",
    "паролем",
    "kennwort",
    "kennwörter",
    "contraseña",
    "mot_de_passe",
    "senha",
    "palavra-passe",
    "hasło",
    "heslo",
    "wachtwoord",
    "lösenord",
    "adgangskode",
    "passord",
    "salasana",
    "şifre",
    "parola",
    "jelszó",
    "lozinka",
    "κωδικός_πρόσβασης",
    "κωδικός",
    "סיסמה",
    "סיסמא",
    "كلمة_المرور",
    "كلمة_السر",
    "رمز_عبور",
    "mật_khẩu",
    "kata_sandi",
    "รหัสผ่าน",
    "पासवर्ड",
]
_FOREIGN_SECRETS: Final = [
    "密钥",
    "密鑰",
    "令牌",
    "秘密鍵",
    "トークン",
    "토큰",
    "токен",
    "токена",
    "jeton",
    "api-schlüssel",
    "api-ключ",
    "apiキー",
    "api密钥",
    "api키",
    "clé_api",
    "clave_api",
    "chave_api",
]
_PASSWORDS: Final = (
    r"pass(?:wor[dt]|wd|phrase|code)|p(?:s)?wd|(?<=[_-])pass|identified[ ]by"
    r"|(?<![A-Za-z0-9_-])(?:pass|pw|psk)"
)
_SECRETS: Final = (
    r"(?:client|app|shared|consumer|webhook|signing|jwt)?[ _.-]?secret"
    r"(?:[ _.-]?(?:access|api))?(?:[ _.-]?key)?"
    r"|(?:api|access|private|encryption|signing|master|account|auth|service|shared|storage|session|admin"
    r"|deploy|license|app|subscription|function)[ _.-]?key"
    r"(?:[_.-]?id(?=[\\\"']{0,4}[ \t]{0,4}:[ \t]{0,4}[\\\"']{1,4}[0-9a-f]{40}))?"
    r"|token|credentials?"
)
SHORT_NAMES: Final = frozenset({"pass", "pw", "psk"})
"""Names of passwords that are words of prose as well."""

_QUALIFIER: Final = (
    r"(?:[_.-]?(?:[0-9]{1,3}|prod|dev|test|stag(?:e|ing)|live|base64|b64|base|value|new|old"
    r"|primary|secondary))?"
)
NAME_END: Final = re.compile(
    rf"(?i)(?:(?P<password>{_PASSWORDS})|(?P<secret>{_SECRETS})){_QUALIFIER}\Z"
)
"""What the name of a variable ends with that holds a secret; `password` where it is one."""

FOREIGN_SIGNS: Final = "，。；、！？：＝（）「」『』【】《》“”‘’«»぀-ヿ㐀-鿿가-힣"
"""Signs and letters with which prose without spaces goes on behind a value."""

BARE: Final = r"[^\s\"'`<>(){}\[\]|,;\\" + FOREIGN_SIGNS + "]"
"""What a value without quotes is made of: where prose without spaces goes on, it ends."""

SINGLE: Final = (
    r"(?:[^'\\\r\n]|\\(?!')|\\'(?=[\w!@#$%^&*+=-])|''(?=\w)"
    r"|'\\'')"
)
"""What a value in single quotes is made of: a quote in it is escaped, doubled or put beside."""

_LINE_END: Final = r"(?:\r\n?|\n)"
_VALUES: Final = rf"""
    (?:[*_]{{1,2}}[ \t]{{0,4}})?[“„‘«「『]?
    (?:"(?P<double>(?:[^"\\\r\n]|\\[^\r\n]){{1,{LONGEST}}})
      |\\{{1,3}}"(?P<escaped>[^"\\\r\n]{{1,{LONGEST}}})
      |'(?P<single>(?!''){SINGLE}{{1,{LONGEST}}})
      |`(?P<ticked>[^`\r\n]{{1,{LONGEST}}})
      |(?P<bare>{BARE}{{1,{LONGEST}}}))
"""
_SIGNS: Final = rf"""
        (?P<typed>
            [ \t]{{0,4}}:[ \t]?[A-Za-z][A-Za-z.\[\]<>|?\x20]{{0,30}}[ \t]?=(?![=>])[ \t]{{0,8}}
          |[ \t]{{1,4}}[Ss]tring[ \t]{{0,4}}=(?!=)[ \t]{{0,8}})
      | (?P<wrap>[ \t]{{0,4}}[:：][*_]{{0,2}}[ \t]{{0,4}}{_LINE_END}[ \t>]{{0,40}}
          |[ \t]{{1,4}}(?:is|was){_LINE_END}[ \t>]{{0,40}})
      | [ \t]{{0,40}}(?::=|=>|=(?!=)|:(?!:)|<-|[：＝])[ \t\u3000]{{0,8}}
      | [ \t]+(?:is|was|to|as|by|ist|lautet|est|es|jest)
        (?:[ \t]{{1,4}}(?::[ \t]{{0,4}})?|:[ \t]{{1,4}})
      | [ \t]{{0,4}}(?:是|为|為|は|은|는)[ \t\u3000]{{0,4}}[:：]?[ \t]{{0,4}}
      | [ \t]{{0,4}},?[ \t]{{0,4}}{_LINE_END}?[ \t]{{0,40}}
        ["']?value["']?[ \t]{{0,4}}[:=][ \t]{{0,4}}
      | (?P<call>\([ \t]{{0,4}})
      | (?P<comma>(?<=["'])[ \t]{{0,4}},[ \t]{{0,4}})
      | [ \t]{{0,40}}\|[ \t]{{0,40}}
      | >
      | (?P<level>[ \t]{{1,4}}[0-9][ \t]{{1,4}})
      | [ \t]{{1,4}}(?:\\{_LINE_END}[ \t]{{0,40}})?
"""


def _named(passwords: str, secrets: str) -> re.Pattern[str]:
    return re.compile(
        rf"""(?ix)
        (?:(?P<password>{passwords})|(?P<secret>{secrets}))
        {_QUALIFIER}
        (?![A-Za-z0-9_-])[\\"'`\]*_]{{0,4}}
        (?:[ ]\[[^\[\]\r\n]{{0,40}}\](?=:))?
        (?P<sign>{_SIGNS})
        {_VALUES}
        """
    )


def _any_of(words: list[str]) -> str:
    return "|".join(re.escape(word).replace("_", "[ ]") for word in words)


_NAMED: Final = _named(_PASSWORDS, _SECRETS)
_NAMED_ABROAD: Final = _named(
    f"{_PASSWORDS}|{_any_of(_FOREIGN_PASSWORDS)}", f"{_SECRETS}|{_any_of(_FOREIGN_SECRETS)}"
)
_KEYWORD: Final = re.compile(
    r"(?i)pass(?:wor[dt]|wd|phrase|code)|p(?:s)?wd|pass|pw|psk|identified|secret|token|key|credential"
)
_ABROAD: Final = tuple(word.replace("_", " ") for word in _FOREIGN_PASSWORDS + _FOREIGN_SECRETS)


def named_values(text: str) -> re.Pattern[str] | None:
    """The pattern of a name with a value, or None where a text has no such name."""
    lowered = text.lower()
    if any(word in lowered for word in _ABROAD):
        return _NAMED_ABROAD
    return _NAMED if _KEYWORD.search(text) else None
