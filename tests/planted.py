"""A key of each common kind, made up on the spot from parts, so that none stands in a file."""

from __future__ import annotations

import base64
import json
import random
import string

_LETTERS = string.ascii_letters + string.digits


class Keys:
    """Keys as issuers make them; the same seed gives the same keys."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no key opens anything

    def of(self, length: int, letters: str = _LETTERS) -> str:
        """So many characters, digits among them."""
        made = "".join(self._random.choice(letters) for _ in range(length - 4))
        return made[:2] + "3e7"[: max(0, min(3, length - 1))] + made[2:] + "9"

    def block(self, kind: str = "RSA ") -> str:
        """A private key on lines, without a line end after it."""
        body = base64.b64encode(self._random.randbytes(900)).decode()
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        edge = "-" * 5
        named = f"{kind}PRIVATE KEY"
        return "\n".join([f"{edge}BEGIN {named}{edge}", *lines, f"{edge}END {named}{edge}"])

    def discord(self) -> str:
        """A bot's token: the number of a user in base64, a time, and a signature."""
        number = base64.b64encode(str(10**17 + self._random.randrange(10**17)).encode()).decode()
        return ".".join([number, self.of(6), self.of(38)])

    def jwt(self) -> str:
        """A signed token of three parts."""

        def part(data: bytes) -> str:
            return base64.urlsafe_b64encode(data).decode().rstrip("=")

        head = json.dumps({"alg": "HS256", "typ": "JWT"}, separators=(",", ":")).encode()
        claims = json.dumps({"sub": self.of(12)}, separators=(",", ":")).encode()
        return ".".join([part(head), part(claims), part(self._random.randbytes(32))])


def planted(seed: int = 7) -> dict[str, tuple[str, str]]:
    """By kind: a line in which a key stands at `{}`, and the key."""
    keys = Keys(seed)
    upper = string.ascii_uppercase + "234567"
    return {
        "aws access key": ("the id is {} here", "AK" + "IA" + keys.of(16, upper).upper()),
        "aws secret": ("aws_secret_access_key = {}", keys.of(40, _LETTERS + "/+")),
        "gcp api key": ("maps?key={}&v=3", "AI" + "za" + keys.of(35)),
        "azure storage": (
            "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x",
            keys.of(86, _LETTERS + "+/") + "==",
        ),
        "azure client secret": ("client secret: {}", keys.of(3) + "8" + "Q~" + keys.of(34)),
        "github": ("push with {}", "gh" + "p_" + keys.of(36)),
        "github fine-grained": (
            "push with {}",
            "github" + "_pat_" + keys.of(22) + "_" + keys.of(59),
        ),
        "gitlab": ("push with {}", "gl" + "pat-" + keys.of(20)),
        "slack": (
            "bot `{}`",
            "xo"
            "xb-"
            + keys.of(12, string.digits)
            + "-"
            + keys.of(12, string.digits)
            + "-"
            + keys.of(24),
        ),
        "slack webhook": (
            "post to https://{}",
            "hooks.slack"
            ".com/services/T" + keys.of(8).upper() + "/B" + keys.of(10).upper() + "/" + keys.of(24),
        ),
        "stripe": ("charge with {}.", "sk" + "_live_" + keys.of(24)),
        "openai": (
            "set {}",
            "sk" + "-proj-" + keys.of(74) + "T3" + "BlbkFJ" + keys.of(74),
        ),
        "anthropic": ("set {}", "sk" + "-ant-api03-" + keys.of(93, _LETTERS + "-_") + "AA"),
        "another model's": ("set {}", "sk" + "-or-v1-" + keys.of(64, "0123456789abcdef")),
        "npm": ("//registry.example.org/:_authToken={}", "np" + "m_" + keys.of(36)),
        "pypi": ("upload with {}", "py" + "pi-AgEIcHlwaS5vcmc" + keys.of(150, _LETTERS + "-_")),
        "hugging face": ("load with {}", "h" + "f_" + keys.of(34)),
        "sendgrid": ("mail with {}", "S" + "G." + keys.of(22) + "." + keys.of(43)),
        "jwt": ("cookie: {}; path=/", keys.jwt()),
        "url": ("postgres://app:{}@db.example.org:5432/x", keys.of(12) + "!"),
        "env": ("DB_PASSWORD={}", keys.of(14)),
        "env token": ("export DEPLOY_TOKEN={}", keys.of(24)),
        "assigned": ('password = "{}"', keys.of(9)),
        "yaml": ("  password: {}", keys.of(9)),
        "json": ('{{"password": "{}"}}', keys.of(9)),
        "said": ("the password is {}, tell nobody", keys.of(9)),
        "basic": (
            "Authorization: Basic {}",
            base64.b64encode(f"admin:{keys.of(14)}".encode()).decode(),
        ),
        "bearer": ("curl -H 'Authorization: Bearer {}'", keys.of(40)),
        "curl user": ("curl -u admin:{} https://x.example.org", keys.of(12)),
        "generic": ("client_secret: {}", keys.of(32, "0123456789abcdef")),
        "said in Chinese": ("密码：{}，请保密", keys.of(14)),
        "said in Japanese": ("パスワード＝{}", keys.of(14)),
        "said in Russian": ("пароль: {}", keys.of(14)),
        "mailchimp": ("mail with {}", keys.of(32, "0123456789abcdef") + "-us" + "12"),
        "notion": ("read with {}", "secret" + "_" + keys.of(43)),
        "notion, newer": ("read with {}", "nt" + "n_" + keys.of(46)),
        "planetscale": ("connect with {}, then", "pscale" + "_tkn_" + keys.of(43)),
        "planetscale password": ("connect with {})", "pscale" + "_pw_" + keys.of(43)),
        "square": ("pay with {}", "sq0" + "csp-" + keys.of(43)),
        "square access": ("pay with {}", "sq0" + "atp-" + keys.of(22)),
        "discord": ("answer with {}", keys.discord()),
        "constant": ("define('DB_PASSWORD', '{}');", keys.of(14)),
        "typed": ('apiKey: string = "{}"', keys.of(24)),
        "set": ('builder.setPassword("{}")', keys.of(14)),
        "built": ('.password("{}")', keys.of(14)),
        "option": ("run --password={} now", keys.of(14)),
        "mysql": ("mysqladmin -uroot -p{} status", keys.of(14)),
        "psql": ("PGPASSWORD={} psql", keys.of(14)),
        "netrc": ("machine h\n  login u\n  password {}", keys.of(14)),
        "kubernetes": (
            "kind: Secret\ndata:\n  a.b: {}",
            base64.b64encode(keys.of(18).encode()).decode(),
        ),
        "docker": (
            '{{"auths": {{"https://x.example.org": {{"auth": "{}"}}}}}}',
            base64.b64encode(f"me:{keys.of(15)}".encode()).decode(),
        ),
        "terraform": ('variable "db_password" {{\n  default = "{}"\n}}', keys.of(14)),
        "connection": ("Server=x;User Id=sa;Password={};Encrypt=true", keys.of(14)),
        "cookie": ("Cookie: theme=dark; sid={}; lang=en", keys.of(32)),
        "block of yaml": ("password: |\n  {}", keys.of(14)),
        "private key": ("{}", keys.block()),
        "private key, pkcs8": ("{}", keys.block("")),
        "private key, openssh": ("{}", keys.block("OPENSSH ")),
    }


def traces(key: str) -> list[str]:
    """What of a key may be found nowhere: itself, or each line of a long one."""
    lines = [line for line in key.split("\n") if "KEY---" not in line and len(line) > 20]
    return lines or [key]
