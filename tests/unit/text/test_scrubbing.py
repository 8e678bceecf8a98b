"""Secrets are found wherever they stand, nothing else is, and lines keep their numbers."""

from __future__ import annotations

import json
import re
import tarfile
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from concordance.text.chunking import chunk_markdown, chunk_plain
from concordance.text.cutting import ChunkSizes
from concordance.text.lines import LINE_END, LineIndex
from concordance.text.markdown import parse_markdown
from concordance.text.scrubbing import MARK, Places, Scrubber, has_mark
from tests.planted import Keys, planted, traces

SCRUBBER = Scrubber()
CORPORA = sorted((Path(__file__).parents[4] / "shared" / "corpora").glob("*.tar.gz"))
EXPECTED = {"rclone": 10, "vertx-zero": 7}
PLANTED = planted()
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=300)
# Pieces that rules look for, so that texts are made which nearly hold a secret.
PIECES = st.sampled_from(
    [
        *(line.format(key) for line, key in PLANTED.values()),
        *[
            "password = ",
            "token: ",
            '"',
            "'",
            "[secret: ",
            "[secret: jwt]",
            "]",
            "://",
            "@",
            ":",
            "\n",
        ],
        *[
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "\r\n",
            "\\n",
            "eyJ",
            "Basic ",
        ],
        *["AKIA", "sk-", "=", "==", " is ", "<", ">", "`", "curl -u a:", "é", "\u2028", "\r", "  "],
    ]
)
SOUPS = st.lists(PIECES | st.text(max_size=12), max_size=20).map("".join)


@pytest.mark.parametrize("kind", PLANTED)
def test_a_key_of_each_kind_is_replaced(kind: str) -> None:
    line, key = PLANTED[kind]
    done = SCRUBBER.scrub(line.format(key))
    assert [trace for trace in traces(key) if trace in done.text] == []
    assert sum(done.counts.values()) == 1
    assert has_mark(done.text)
    before, _, after = line.format("\0").partition("\0")
    assert done.text.startswith(before)
    assert done.text.rstrip("\n").endswith(after)


def test_a_mark_names_the_kind() -> None:
    line, key = PLANTED["aws access key"]
    assert SCRUBBER.text(line.format(key)) == "the id is [secret: aws access key] here"


@pytest.mark.parametrize(
    "line",
    [
        "redis://:{}@localhost:6379/0",
        "https://{}:x-oauth-basic@github.com/o/r",
        "Server=x;User Id=sa;Password={};Encrypt=true",
        "jdbc:postgresql://h/db?user=a&password={}",
        "spring.datasource.password={}",
        "machine h login u password {}",
        "| Password | {} |",
        "**Password:** {}",
        "Password: `{}`",
        "<password>{}</password>",
        "- name: DB_PASSWORD\n  value: {}",
        '{{"name": "API_TOKEN", "value": "{}"}}',
        "CREATE USER a IDENTIFIED BY '{}'",
        "ALTER USER a PASSWORD '{}'",
        "sshpass -p {} ssh host",
        "mysql -u root -p{} db",
        "docker login -u me --password {}",
        "X-Api-Key: {}",
        "my password was {}",
        "the token is `{}`",
        "db_pass = '{}'",
    ],
)
def test_a_value_is_told_by_its_place(line: str) -> None:
    value = "gh" + "p_" + Keys().of(36) if "x-oauth" in line else Keys(3).of(14)
    text = line.format(value)
    done = SCRUBBER.scrub(text)
    assert value not in done.text
    assert done.text.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "fixed in 9befc2b8928a9426501d3bf62f72849d5cbcd5a3",
        "sha256:" + "0a1b2c3d" * 8,
        "request 123e4567-e89b-12d3-a456-426614174000",
        'integrity="sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"',
        "token: <your-token>",
        "API_KEY=xxxxxxxxxxxxxxxxxxxx",
        "TOKEN=${TOKEN}",
        "token: {{ secrets.TOKEN }}",
        "password=changeme",
        "password: ********",
        "password: string",
        "password: your-password-here",
        "Enter your password: it has at least 8 characters.",
        "token = response.token",
        "password = get_password()",
        'pwd = os.environ["PWD"]',
        "PASSWORD_MIN_LENGTH=12",
        "token_type: bearer",
        "The secret is that it's simple.",
        "The password is SHA-256 hashed.",
        "Tokens: 1500, cost: 2.5",
        "key: value",
        '"password": "Enter your password"',
        "secretName: db-credentials",
        "secret: /run/secrets/db",
        "https://user:password@example.org/x",
        "https://${USER}:${PASSWORD}@example.org/x",
        "git@github.com:owner/name.git",
        "Authorization: Basic authentication",
        "Authorization: Bearer <token>",
        "Bearer authentication token",
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
        "A block starts with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----.",
        "gh" + "p_" + "x" * 36,
        "class='sk-fading-circle-with-a-long-name'",
        "docker run -u 1000:1000 image",
        "https://example.org/reset?token=<token>&user=me",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert SCRUBBER.scrub(text).text == text


@pytest.mark.parametrize(
    "edge", ["", " ", "`", '"', "'", "*", "_", "(", ",", "\n", "\r\n", "|", "é "]
)
@pytest.mark.parametrize("kind", ["aws access key", "github", "gitlab", "stripe", "slack", "jwt"])
def test_a_key_is_found_between_any_signs(kind: str, edge: str) -> None:
    key = PLANTED[kind][1]
    assert key not in SCRUBBER.text(f"{edge}{key}{edge}")


@pytest.mark.parametrize(
    "before", ["REGION=eu\\n", "x%20", "name-", "name_", "\u5bc6\u94a5\u662f", "\u00fc"]
)
@pytest.mark.parametrize(
    "kind", ["aws access key", "openai", "anthropic", "jwt", "stripe", "gcp api key"]
)
def test_a_key_is_found_after_an_escape_a_dash_or_a_foreign_letter(kind: str, before: str) -> None:
    key = PLANTED[kind][1]
    assert key not in SCRUBBER.text(f"{before}{key} and more")


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_block_that_is_cut_is_replaced_as_far_as_it_goes(cut: int) -> None:
    lines = Keys().block().split("\n")
    for kept in (lines[:-cut], lines[cut:]):
        text = "\n".join(["before", *kept, "", "after it comes text"])
        done = SCRUBBER.text(text)
        assert [line for line in lines[1:-2] if line in done] == []
        assert done.startswith("before\n")
        assert done.endswith("\nafter it comes text")
        assert done.count("\n") == text.count("\n")


@pytest.mark.parametrize("prefix", ["> ", "    ", "# ", "  | ", "\t"])
def test_a_block_is_found_behind_what_its_lines_begin_with(prefix: str) -> None:
    block = Keys().block()
    done = SCRUBBER.text("\r\n".join(prefix + line for line in block.split("\n")))
    assert [trace for trace in traces(block) if trace in done] == []
    assert done.count("\r\n") == block.count("\n")


def test_a_service_account_is_scrubbed_whole() -> None:
    keys = Keys()
    account = {
        "type": "service_account",
        "private_key_id": keys.of(40, "0123456789abcdef"),
        "private_key": keys.block("") + "\n",
        "client_email": "a@b.iam.gserviceaccount.com",
    }
    for text in (
        json.dumps(account),
        json.dumps(account, indent=2),
        json.dumps(json.dumps(account)),
    ):
        done = SCRUBBER.text(text)
        assert account["private_key_id"] not in done
        assert [trace for trace in traces(account["private_key"]) if trace in done] == []
        assert "client_email" in done
        assert "gserviceaccount" in done


def test_a_value_longer_than_it_is_judged_by_is_taken_whole() -> None:
    value = Keys().of(3_000)
    for text in (f"token: {value}", f'secret = "{value}" # and more'):
        done = SCRUBBER.text(text)
        assert not any(value[at : at + 20] in done for at in range(0, 2_980, 20))
    assert done.endswith('" # and more')


def test_a_value_in_an_address_ends_at_the_next_one() -> None:
    text = f"https://x.example.org/?token={Keys().of(24)}&user=me"
    assert SCRUBBER.text(text) == "https://x.example.org/?token=[secret: secret value]&user=me"


def test_where_it_is_off_nothing_changes() -> None:
    line, key = PLANTED["github"]
    assert Scrubber(on=False).scrub(line.format(key)).text == line.format(key)
    assert Scrubber(on=False).fingerprint != SCRUBBER.fingerprint


@given(SOUPS | ANY_TEXT)
@example("[secret: password]")
@example("password = [secret: password]")
@example("token=password=abc123def456 secret: [secret: jwt]x1y2z3w4v5u6t7")
@settings(max_examples=300, deadline=None)
def test_scrubbed_text_stays_and_lines_keep_their_numbers(text: str) -> None:
    done = SCRUBBER.scrub(text)
    again = SCRUBBER.scrub(done.text)
    assert (again.text, again.counts) == (done.text, {})
    assert LINE_END.findall(done.text) == LINE_END.findall(text)
    assert LineIndex(done.text).count == LineIndex(text).count


@given(SOUPS)
@settings(max_examples=200, deadline=None)
def test_places_lead_to_the_same_text(text: str) -> None:
    done = SCRUBBER.scrub(text)
    places = Places(done)
    assert all(a.end <= b.start for a, b in pairwise(done.replaced))
    position = 0
    for secret in (*done.replaced, None):
        end = len(text) if secret is None else secret.start
        moved = done.text[places.place(position) : places.place(position) + end - position]
        assert moved == text[position:end]
        if secret is not None:
            mark = done.text[places.place(secret.start) : places.place(secret.end)]
            assert MARK.match(mark)
            position = secret.end


@given(
    st.sampled_from(sorted(PLANTED)),
    st.integers(0, 2_500),
    st.sampled_from(["words of a sentence ", "word\n", "a. ", "| cell ", "漢字。"]),
    st.integers(1, 40),
)
@settings(max_examples=150, deadline=None)
def test_no_key_survives_where_a_chunk_would_end(
    kind: str, before: int, filler: str, after: int
) -> None:
    line, key = PLANTED[kind]
    lead = (filler * 400)[:before].rstrip() + "\n"
    text = SCRUBBER.text(f"# T\n\n{lead}{line.format(key)}\n{filler * after}")
    sizes = ChunkSizes(target=300, overlap=60, window=80)
    chunks = (*chunk_markdown(text, parse_markdown(text), sizes), *chunk_plain(text, sizes))
    pieces = {t[at : at + 12] for t in traces(key) for at in range(0, len(t) - 11, 6)} or {key}
    assert [p for p in pieces for c in chunks if p in c.content] == []


@given(st.sampled_from(sorted(PLANTED)), st.sampled_from(["docs/{}.md", "{}", "a b/{}/x.md"]))
@settings(deadline=None)
def test_names_lose_keys_and_stay_apart(kind: str, path: str) -> None:
    one, other = (path.format(planted(seed)[kind][1].replace("\n", " ")) for seed in (1, 2))
    first, second = SCRUBBER.name(one), SCRUBBER.name(other)
    assert SCRUBBER.name(first) == first
    if has_mark(first):
        assert first != second
        assert re.search(r"\[secret: [a-z0-9 ]+\]-[0-9a-f]{8}", first)
    assert SCRUBBER.name("docs/guide.md") == "docs/guide.md"


@pytest.mark.skipif(not CORPORA, reason="the corpora are not beside this checkout")
@pytest.mark.parametrize("path", CORPORA, ids=lambda path: path.name.split(".")[0])
def test_documentation_of_real_projects_keeps_its_text(path: Path) -> None:
    """A few marks in two of the eight trees, all of them credentials by their form."""
    counts: Counter[str] = Counter()
    with tarfile.open(path) as tree:
        for entry in tree:
            if not entry.isfile() or not entry.name.lower().endswith((".md", ".mdx", ".markdown")):
                continue
            read = tree.extractfile(entry)
            assert read is not None
            text = read.read().decode("utf-8", "replace")
            done = SCRUBBER.scrub(text)
            counts.update(done.counts)
            assert LINE_END.findall(done.text) == LINE_END.findall(text)
            assert SCRUBBER.text(done.text) == done.text
    assert sum(counts.values()) <= EXPECTED.get(path.name.split(".")[0], 0), counts


LONG = 1_000_000
HOSTILE = {
    "one letter": "a" * LONG,
    "names and signs": "password=" * (LONG // 9),
    "names and spaces": "password " * (LONG // 9),
    "names of two kinds": "AccountKey=" * (LONG // 11),
    "open quotes": 'password="' * (LONG // 10),
    "beginnings of jwt": "eyJ" * (LONG // 3),
    "two parts of jwt": "eyJabcdefghij." * (LONG // 14),
    "beginnings of blocks": "-----BEGIN RSA PRIVATE KEY-----\n" * (LONG // 32),
    "ends of blocks": "-----END RSA PRIVATE KEY-----\n" * (LONG // 30),
    "lines of a block": ("A" * 64 + "\n") * (LONG // 65),
    "gaps of a block": "-----BEGIN PRIVATE KEY-----" + " " * LONG,
    "escaped line ends": "-----BEGIN PRIVATE KEY-----" + "\\n" * (LONG // 2),
    "addresses": "://a:b" * (LONG // 6),
    "colons": "://" + "a:" * (LONG // 2) + "@",
    "prefixes": "ghp_" * (LONG // 4),
    "sk": "sk-aA1" * (LONG // 6),
    "marks": "[secret: jwt]" * (LONG // 13),
    "hexadecimal": "0123456789abcdef" * (LONG // 16),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_line_of_a_megabyte_takes_seconds(kind: str) -> None:
    SCRUBBER.scrub(HOSTILE[kind])
