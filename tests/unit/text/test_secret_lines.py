"""The value of a line of settings is taken to the line's end, whatever signs are in it."""

from __future__ import annotations

import pytest

from concordance.text.scrubbing import Scrubber
from tests.planted import Keys

SCRUBBER = Scrubber()
DJANGO = "django-" + "insecure-"
SIGNS = ")(,;|<>'\"[]{}\\!*?%^~&@#:=$"


def replaced(line: str, value: str, kind: str = "password") -> None:
    text = f"A=1\n{line}\nB=2\n"
    done = SCRUBBER.text(text)
    assert done == text.replace(value, f"[secret: {kind}]")


@pytest.mark.parametrize("at", [1, 3, 5])
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(
    "line", ["DB_PASSWORD={}", "export DB_PASSWORD={}", "- DB_PASSWORD={}", "DB_PASSWORD={} # prod"]
)
def test_a_password_of_the_environment_may_have_any_sign(line: str, sign: str, at: int) -> None:
    value = "aB3dE5fG7"[:at] + sign + "aB3dE5fG7"[at:]
    replaced(line.format(value), value)


@pytest.mark.parametrize("value", ["$aB3dE5fG7", "Passw0rd!", "aB3dE5fG7)", "aB3dE5fG7;"])
def test_a_password_may_begin_and_end_with_a_sign(value: str) -> None:
    replaced(f"DB_PASSWORD={value}", value)
    replaced(f"DB_PASSWORD={value} # prod", value)
    replaced(f"DB_PASSWORD={value}\r", value)


@pytest.mark.parametrize(
    "value",
    [
        DJANGO + "7x(k&9@z!q_w3e5r7t9y1u_i2o4p6a8s0d&f3g5h7",
        DJANGO + "&x)ht2w3e5r7t9y1u2i4o6p8a0s9d7f5g3h1j",
        DJANGO + "#k1]l2;m3'n4,o5.p6/q7[r8{s9}t0|u1",
    ],
)
def test_a_secret_key_is_taken_whole(value: str) -> None:
    replaced(f"SECRET_KEY={value}", value, "secret value")


@pytest.mark.parametrize(
    "line",
    ["password: {}", "  db.password: {}", "- password: {} # it", "spring.datasource.password={}"],
)
@pytest.mark.parametrize("value", ["aB3)dE5fG7", "aB3,dE5fG7", "aB3'dE5f", "a3|dE5fG7", "Zx9kQ2!"])
def test_plain_values_of_settings_are_taken_whole(line: str, value: str) -> None:
    replaced(line.format(value), value)


@pytest.mark.parametrize(
    "value", ["aB3\\'dE5fG7", "aB3''dE5fG7", "aB3'\\''dE5fG7", "a\\B3dE5fG7", "aB3\\\\dE5"]
)
def test_a_quote_within_single_quotes_is_no_end(value: str) -> None:
    replaced(f"password: '{value}'", value)
    replaced(f"DB_PASSWORD='{value}'", value)
    replaced(f"f(password='{value}', user='a')", value)


@pytest.mark.parametrize(
    "text",
    [
        "PASSWORD=$(cat /run/secrets/db1)",
        "PASSWORD=${DB_PASSWORD:-x1}",
        "PASSWORD=$DbPassword1",
        "PASSWORD=<your-password-1>",
        'PASSWORD=os.environ["PASSWORD1"]',
        "TOKEN=get_token(1)",
        "API_KEY={{key1}}",
        "  password=request.form.get('pw1'),",
        "    token=tokens[i1],",
        "    password=hash(password1))",
        "password: z.string().min(8)",
        "password: varchar(255),",
        "password: Option<String>;",
        "token: [a1,b2]",
        "token: string|undefined|null",
        "secret: (user1)=>user1.secret",
        "password: ''",
        "password = '''\ntext1\n'''",
        "f(password='', other='abc1')",
        "TOKEN_LIMIT=4096,8192",
        "password: [secret: password]!",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert SCRUBBER.text(text) == text


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("DB_PASSWORD={}|sh", "|sh"),
        ("DB_PASSWORD={}\\nNEXT=1", "\\nNEXT=1"),
        ("DB_PASSWORD={}</code>", "</code>"),
        ("DB_PASSWORD={}。", "。"),
    ],
)
def test_what_follows_a_value_stays(line: str, rest: str) -> None:
    assert SCRUBBER.text(line.format(Keys(5).of(14))) == f"DB_PASSWORD=[secret: password]{rest}"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "PASSWORD=" + "a1)" * 300_000,
        "PASSWORD=a1)b2c3 \n" * 50_000,
        "A_PASSWORD" * 100_000,
        "PASSWORD=" + "'" * 500_000,
        "password='" + "\\'" * 300_000,
        "password='" + "''a" * 300_000,
        "PASSWORD=" + "(\\n" * 300_000,
        ("PASSWORD=" + " " * 500 + "\n") * 2_000,
        "-" * 1_000_000,
    ],
    ids=range(9),
)
def test_the_time_grows_with_the_length_alone(text: str) -> None:
    SCRUBBER.scrub(text)
