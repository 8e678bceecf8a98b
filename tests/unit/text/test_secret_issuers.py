"""Formats and places of single issuers, and what only looks like them."""

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


AWS_ID = "AK" + "IA" + "Q3E7R2T5Y4U6I2O7"
AWS_SECRET = "wJ3al/rXUt" + Keys(9).of(30)


@pytest.mark.parametrize(
    "text",
    [
        f"AWS Access Key ID [None]: {AWS_ID}\nAWS Secret Access Key [None]: {{}}\nDefault region:",
        "AWS Secret Access Key [****************ABCD]: {}\n",
        f"Access key ID,Secret access key\r\n{AWS_ID},{{}}\r\n",
        f"{AWS_ID} / {{}}",
        f"{AWS_ID}:{{}}",
        f"{AWS_ID}\n{{}}\n",
        f"Access key\n{AWS_ID}\n\nSecret\n{{}}\n",
        "Secret access key\n{}\n",
        "| Access key | Secret access key |\n|---|---|\n| (mine) | {} |\n",
        f"User,Key,Secret access key\nme,{AWS_ID},{{}},x",
        "of [secret: aws access key] it is {}.",
    ],
)
def test_a_secret_of_aws_is_told_by_what_stands_beside_it(text: str) -> None:
    done = SCRUBBER.text(text.format(AWS_SECRET))
    assert AWS_SECRET not in done
    assert AWS_ID not in done
    before, _, after = text.replace(AWS_ID, "[secret: aws access key]").partition("{}")
    assert done.startswith(before)
    assert done.endswith(after)


def test_passwords_are_told_behind_a_default_in_brackets() -> None:
    replaced("Password [none]: {}", PASSWORD)


@pytest.mark.parametrize(
    "text",
    [
        "[secret: aws access key] in 9befc2b8928a9426501d3bf62f72849d5cbcd5a3",
        "The secret access key\nis in src/main/resources/ExampleOfAFolderWithName.",
        f"the secret access key\n\n\n\n\n{AWS_SECRET}",
        "password [optional]: string",
        "secret access key " + "x" * 40,
    ],
)
def test_what_stands_beside_a_key_of_aws_stays(text: str) -> None:
    assert SCRUBBER.text(text) == text


HEX = "0123456789abcdef"


@pytest.mark.parametrize("edge", ["{}", "`{}`", "({})", "{},", "{}\\n", '"{}"', "KEY={}"])
@pytest.mark.parametrize(
    "key",
    [
        "1/" + "/0g" + Keys(11).of(60),
        "sb" + "_secret_" + Keys(12).of(31),
        "sb" + "p_" + Keys(13).of(40, HEX),
        "v1" + ".0-" + Keys(14).of(24, HEX) + "-" + Keys(15).of(146, HEX),
        "f" + "w_" + Keys(16).of(22),
        "c" + "io" + Keys(17).of(32),
        "EA" + "AC" + Keys(18).of(180),
        "access" + "_token$production$" + Keys(19).of(16, HEX) + "$" + Keys(20).of(32, HEX),
        "vc" + "p_" + Keys(21).of(56),
        "HR" + "KU-" + Keys(23).of(60),
        "pa" + "t" + Keys(24).of(14) + "." + Keys(25).of(64, HEX),
        "ls" + "v2_pt_" + Keys(26).of(32, HEX) + "_" + Keys(27).of(10, HEX),
    ],
)
def test_a_format_of_a_smaller_issuer_is_known(key: str, edge: str) -> None:
    done = SCRUBBER.text(f"with {edge.format(key)} it")
    assert key[6:] not in done
    assert done.startswith("with ")
    assert done.endswith(" it")


def test_a_key_of_laravel_is_known() -> None:
    replaced("x base64:{} y", base64.b64encode(bytes(range(100, 132))).decode())


@pytest.mark.parametrize(
    "key",
    [
        "gh" + "p\\_" + Keys(31).of(36),
        "sk" + "\\_live\\_" + Keys(32).of(24),
        "sk" + "\\-ant\\-api03\\-" + Keys(33).of(90),
        "gl" + "pat\\-" + Keys(34).of(20),
    ],
)
def test_a_key_is_found_with_signs_that_markdown_needs_escaped(key: str) -> None:
    replaced("with {} it", key)


@pytest.mark.parametrize(
    "line",
    [
        "docker login -u me -p {} registry.example.org",
        "podman login -u me -p {}",
        "helm registry login -u me -p {} x",
        "az login --service-principal -u x -p {} --tenant y",
        "sqlcmd -S h -U sa -P {} -Q x",
        "sqlcmd -S h -U sa -P '{}'",
        "htpasswd -b .htpasswd me {}",
        "htpasswd -bc .htpasswd me {}",
        "htpasswd -nbB me {}",
        "echo 'me:{}' | sudo chpasswd",
        "echo me:{} | chpasswd",
        "The admin password for staging is `{}`",
        "Password for bob: {}",
        "the password of the admin account was {}, once",
        "the password is: {}",
    ],
)
def test_more_places_tell(line: str) -> None:
    replaced(line, PASSWORD)


@pytest.mark.parametrize(
    "text",
    [
        "docker login -u me -p $PASS x",
        "docker login -u me --password-stdin",
        "docker run -p 8080:8080 x",
        "sqlcmd -S h -U sa -P <password>",
        "htpasswd -c .htpasswd me",
        "htpasswd -B -c file me2",
        "The password for the user is stored in base64-encoded form",
        "Password for bob: required",
        "the password of a user: at least 8 characters",
        "patch cio and pul-request vcp_table fw_update_firmware_of_the_device",
        "base64:aGVsbG8=",
        "snake\\_case\\_name\\_with\\_parts",
    ],
)
def test_what_only_looks_like_more_of_them_stays(text: str) -> None:
    assert SCRUBBER.text(text) == text
