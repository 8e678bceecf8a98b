"""Where a secret stands tells what it is: the mark takes the value, and nothing around it."""

from __future__ import annotations

import base64

import pytest

from concordance.text.scrubbing import Scrubber
from tests.planted import Keys

SCRUBBER = Scrubber()
PASSWORD = Keys(3).of(14)
TOKEN = Keys(4).of(32)


def replaced(line: str, value: str) -> None:
    """The value alone became a mark; what is around it is as it was."""
    done = SCRUBBER.scrub(line.format(value))
    before, _, after = line.format("\0").partition("\0")
    assert (done.text[: len(before)], done.text[len(done.text) - len(after) :]) == (before, after)
    (secret,) = done.replaced
    assert (secret.start, secret.end) == (len(before), len(before) + len(value))


WORDS = [
    *["密码", "密碼", "口令", "数据库密码", "パスワード", "暗証番号", "비밀번호", "암호"],
    *["пароль", "Пароль", "Passwort", "Kennwort", "contraseña", "Contraseña", "mot de passe"],
    *["senha", "hasło", "heslo", "wachtwoord", "lösenord", "adgangskode", "salasana", "şifre"],
    *["parola", "jelszó", "lozinka", "κωδικός", "סיסמה", "كلمة المرور", "mật khẩu", "kata sandi"],
    *["passord", "รหัสผ่าน", "पासवर्ड", "password", "Password"],
]


@pytest.mark.parametrize(
    "form",
    [
        "：{}",
        ":{}",
        ": {}",
        "＝{}",
        "={}",
        "：{}。",
        "：{}，请保密",
        "：「{}」",
        "：“{}”",
        ": `{}`",
    ],
)
@pytest.mark.parametrize("word", WORDS)
def test_a_password_is_told_in_any_language(word: str, form: str) -> None:
    replaced(word + form, "hunter2" + "secretvalue")


@pytest.mark.parametrize("line", ["密码是{}", "密码为{}。", "パスワードは{}です", "비밀번호는 {}"])
def test_a_password_is_said_without_a_space(line: str) -> None:
    replaced(line, PASSWORD)


@pytest.mark.parametrize("line", ["密钥：{}", "令牌：{}", "トークン＝{}", "токен: {}", "token：{}"])
def test_a_token_is_told_in_any_language(line: str) -> None:
    replaced(line, TOKEN)


EDGES = [
    *["`{}`", '"{}"', "'{}'", "({})", "[{}](x)", "<code>{}</code>", "| {}| x |", "| {} | x |"],
    *["| `{}` |", "**{}**", "_`{}`_", "{}, then", "{}.", "{}; ls", "{} && ls", "{}|sh", "{}>x"],
    *["{}\nnext", "{}\\nnext", "「{}」", "{}。"],
]


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    "command",
    [
        "curl -u admin:{}",
        "curl -uadmin:{}",
        "curl --user admin:{}",
        "sshpass -p {}",
        "mysql -uroot -p{}",
        "redis-cli -a {}",
        "http -a admin:{}",
        "psql --password={}",
        "PGPASSWORD={}",
    ],
)
def test_a_mark_ends_where_the_value_does(command: str, edge: str) -> None:
    if edge == '"{}"' and command.startswith("PG"):
        edge = "`{}`"
    replaced(edge.replace("{}", command), PASSWORD)


@pytest.mark.parametrize(
    "line",
    [
        'curl -u "admin:{}" https://x.example.org',
        "curl -u 'admin:{}' https://x.example.org",
        "curl -u admin:'{}' https://x.example.org",
        'mysql -p"{}" db',
        "sshpass -p '{}' ssh host",
    ],
)
def test_a_password_in_quotes_is_taken_whole(line: str) -> None:
    replaced(line, PASSWORD + " and, more; so)")


@pytest.mark.parametrize(
    "line",
    [
        "define('DB_PASSWORD', '{}');",
        'define( "AUTH_KEY", "{}" );',
        'System.setProperty("javax.password", "{}")',
        'apiKey: string = "{}"',
        'let dbPassword: string = "{}";',
        'db_password: Optional[str] = "{}"',
        'var token string = "{}"',
        'builder.setPassword("{}")',
        '.password("{}")',
        "withPassword('{}')",
        'setApiKey("{}")',
        "run --password={}",
        "run --password {}",
        "run --password='{}'",
        "run --password \\\n  {} x",
        "mysql -u root -p{} db",
        "mysqldump -p{} db > x",
        "mysqladmin -u root -p{} status",
        "PGPASSWORD={} psql -h x",
        "MYSQL_PWD={} mysql",
        "REDISCLI_AUTH={} redis-cli",
        "requirepass {}",
        "-passin pass:{}",
        "echo {} | docker login --password-stdin",
        "sqlplus scott/{}@db",
        "setx PASSWORD {}",
        "ENV PASSWORD {}",
        "machine h login y password {}",
        "machine h\n  login y\n  password {}",
        "default login anonymous password {}",
        'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}',
        '{{"password":"{}"}}',
        '{{"db": {{"pass": "{}"}}}}',
        "pass={}",
        "pass = {}",
        "  pw: {}",
        '"psk": "{}"',
        "  password: '{}'",
        "password:\n  {}\n",
        "password: |\n  {}\nnext: 1",
        "password: >-\n  {}\nnext: 1",
        "the password is\n{}",
        "<password>{}</password>",
        '<add key="Password" value="{}"/>',
        "db.password={}",
        "Server=x;Uid=sa;Pwd={};",
        "jdbc:mysql://h/d?user=a&password={}",
        "jdbc:oracle:thin:scott/{}@h:1521:x",
        "jdbc:sqlserver://h;user=a;password={};encrypt=true",
        "mongodb+srv://u:{}@c.example.org/x",
        "redis://:{}@h:6379",
        "password 7 {}",
        "secret_key_base: {}",
        "Authorization: Bearer {}",
        "Authorization: ApiKey {}",
        '"Authorization": "{}"',
        "Set-Cookie: session={}; Path=/",
        "Cookie: a=b; connect.sid={}",
        "PHPSESSID={}",
    ],
)
def test_a_place_tells(line: str) -> None:
    replaced(line, TOKEN if "uthor" in line or "ook" in line or "SID" in line else TOKEN[:14])


@pytest.mark.parametrize(
    "manifest",
    [
        "apiVersion: v1\nkind: Secret\ntype: Opaque\ndata:\n  some.name: {}\n",
        "apiVersion: v1\r\nkind: Secret\r\ndata:\r\n  name: {}\r\n",
        "data:\n  name: '{}'\nkind: Secret\n",
        "> kind: Secret\n> data:\n>   name: {}\n",
        '{{"kind": "Secret", "data": {{"name": "{}"}}}}',
        "```yaml\nkind: Secret\ndata:\n  name: {} # it\n```\n\ndata:\n  other: c29tZXRoaW5n\n",
        "kind: Secret\ndata:\n  name: {}\n---\nkind: ConfigMap\ndata:\n  other: c29tZXRoaW5n\n",
        '{{"auths": {{"https://x.example.org": {{"auth": "{}"}}}}}}',
        "_auth={}",
    ],
)
def test_a_secret_in_base64_is_told_by_its_manifest(manifest: str) -> None:
    replaced(manifest, base64.b64encode(f"me:{PASSWORD}".encode()).decode())


@pytest.mark.parametrize(
    "edge", ["{}", "`{}`", "({})", "{},", "{}.", "|{}|", "<{}>", "{}\\n", "“{}”"]
)
@pytest.mark.parametrize(
    "key",
    [
        Keys(1).of(32, "0123456789abcdef") + "-us" + "21",
        "secret" + "_" + Keys(2).of(43),
        "nt" + "n_" + Keys(3).of(46),
        *["pscale" + f"_{kind}_" + Keys(4).of(43) for kind in ("tkn", "pw", "oauth")],
        "sq0" + "csp-" + Keys(5).of(43),
        "sq0" + "atp-" + Keys(6).of(22),
        Keys(7).discord(),
    ],
)
def test_a_format_needs_no_word_beside_it(key: str, edge: str) -> None:
    replaced(f"with {edge} it", key)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://user:secret@localhost/db",
        "https://user:****@host/x",
        "https://user:your-password@host/x",
        "https://oauth2:my-token@host/x",
        "https://#{user}:#{password}@host/x",
        "password: <your password>",
        "password: ${PASSWORD}",
        "password: example1",
        'password = os.environ["PASSWORD"]',
        'password = os.getenv("DB_PASSWORD1")',
        "password: str | None = None",
        'password: str = ""',
        "password: SecretStr = Field(..., min_length=8)",
        'password = getpass.getpass("Password2: ")',
        "密码：请输入密码",
        "密码：至少8个字符",
        "密码是必填项",
        "パスワード：8文字以上の英数字",
        "비밀번호: 8자 이상",
        "пароль: не менее 8 символов",
        "Passwort: mindestens 8 Zeichen",
        "Das Passwort ist base64-kodiert",
        "The password is base64-encoded",
        "mot de passe : 8 caractères minimum",
        "token commit 9befc2b8928a9426501d3bf62f72849d5cbcd5a3",
        "setPassword(newPassword)",
        'user.setPassword("")',
        'getPassword("user1")',
        'form.text("password", "Enter your password1")',
        'request.getParameter("token", "id1")',
        '["username", "password", "email1"]',
        'builder.password("${DB_PASSWORD}")',
        'variable "db_password" { type = string }',
        'variable "key_name" {\n  default = "my-key"\n}',
        "pass: 12 of 12",
        "tests pass: test_case_12345678",
        "const { pass, fail } = counts",
        '"pass": true',
        'pass="$1"',
        "Cookie: theme=dark; lang=en",
        "Set-Cookie: session=<id>; Path=/",
        '"sessionId":"agent-a0ad4f44468bdf20d"',
        "`curl -u user:password`",
        "curl -u <user>:<token> x",
        "curl -u user:your_token x",
        'curl -u "$USER:$PASS" x',
        "docker run -u1000:1000 x && curl y",
        "mysql -u root -p${PASS} db",
        "mysql -h h -P 3306 -p",
        "docker run mysql -p3306:3306",
        "requirepass <password>",
        "echo $TOKEN | docker login --password-stdin",
        "Authorization: Digest username",
        "auth: OptionalString",
        "self.auth = MultiDomainBasicAuth(index_urls)",
        "enable secret 5 times",
        "kind: SecretStore\ndata:\n  name: c29tZXRoaW5nZWxzZQ==",
        "kind: ConfigMap\ndata:\n  name: c29tZXRoaW5nZWxzZQ==",
        "kind: Secret\ndata:\n  name: cGFzc3dvcmQ=",
        "password:\n  type: string2\n  min_length: 12",
        "PASSWORD=\nFIRST_NAME=anna5",
        "the password is\nSHA256 hashed and salted2",
        "let token: string = await get2(x)",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert SCRUBBER.scrub(text).text == text


@pytest.mark.parametrize("size", [100, 2_000, 70_000])
def test_an_image_in_base64_stays(size: int) -> None:
    image = base64.b64encode(bytes(n * 7919 % 251 for n in range(size))).decode()
    text = f"![logo](data:image/png;base64,{image})"
    assert SCRUBBER.scrub(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "password=" * 20_000,
        "password=\n" * 20_000,
        "密码：" * 20_000,
        "password: |\n" * 5_000,
        "kind: Secret\ndata:\n" * 5_000,
        'variable "password" {' * 5_000,
        "curl -u a:" * 20_000,
        "cookie: sid=" * 20_000,
        "-----BEGIN RSA PRIVATE KEY-----\nabcdefghijklmnopqrstuvwxyz\n" * 2_000,
        "password😀\u2028=\u0000\r" * 5_000,
    ],
)
def test_text_that_nearly_holds_secrets_is_read_to_its_end(text: str) -> None:
    """Behind it a secret is found, and the second time nothing changes."""
    done = SCRUBBER.scrub(f"{text}\n\nexport DB_PASSWORD={PASSWORD}\n")
    assert done.text.endswith("export DB_PASSWORD=[secret: password]\n")
    assert SCRUBBER.text(done.text) == done.text


def test_lines_of_a_block_of_yaml_are_taken_one_by_one() -> None:
    text = (
        f"secrets:\n  token: |\n    {TOKEN[:16]}\n    {TOKEN[16:]}\n    plain words stay\n  a: b\n"
    )
    done = SCRUBBER.text(text)
    mark = "[secret: secret value]"
    assert done == f"secrets:\n  token: |\n    {mark}\n    {mark}\n    plain words stay\n  a: b\n"
