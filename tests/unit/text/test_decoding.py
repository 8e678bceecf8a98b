"""Bytes to text: what is forgiven, what is refused, and with which words."""

from __future__ import annotations

import pytest

from concordance.text.decoding import SourceText, Unreadable, decode


def test_utf8_is_read_as_it_is() -> None:
    assert decode("# Zürich 🚂\r\n".encode()) == SourceText("# Zürich 🚂\r\n", ())


def test_a_byte_order_mark_is_dropped() -> None:
    assert decode(b"\xef\xbb\xbf---\na: b\n---\n") == SourceText("---\na: b\n---\n", ())


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b" \n\t\r\n", "\u2028\u00a0\x0c".encode()])
def test_nothing_to_read_is_empty_and_not_failed(data: bytes) -> None:
    result = decode(data)
    assert isinstance(result, Unreadable)
    assert result.status == "empty"


def test_lfs_pointer_is_skipped_with_its_size() -> None:
    pointer = (
        b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
        b"size 12345\n"
    )
    assert decode(pointer) == Unreadable(
        "skipped", "Git LFS pointer to 12345 bytes; the content is not in the repository"
    )


def test_a_long_text_that_quotes_a_pointer_is_read() -> None:
    text = "version https://git-lfs.github.com/spec/v1\n" + "explained at length\n" * 60
    assert isinstance(decode(text.encode()), SourceText)


@pytest.mark.parametrize(
    ("encoding", "name"),
    [("utf-16", "UTF-16 LE"), ("utf-32", "UTF-32 LE")],
)
def test_other_unicode_encodings_are_named(encoding: str, name: str) -> None:
    result = decode("# Title\n".encode(encoding))
    assert isinstance(result, Unreadable)
    assert result.status == "failed"
    assert name in result.reason


def test_big_endian_marks_are_named() -> None:
    for mark, name in ((b"\xfe\xff\0#", "UTF-16 BE"), (b"\0\0\xfe\xff\0\0\0#", "UTF-32 BE")):
        result = decode(mark)
        assert isinstance(result, Unreadable)
        assert name in result.reason


def test_not_utf8_says_which_byte_and_where() -> None:
    data = b"one\r\ntwo\rthree\n" + "中文".encode("gb18030")
    assert decode(data) == Unreadable("failed", "not UTF-8: byte 0xd6 at offset 15, line 4")


def test_a_few_nuls_are_replaced_one_for_one() -> None:
    assert decode(b"before\0after") == SourceText(
        "before\ufffdafter", ("1 NUL character replaced",)
    )
    result = decode(b"a\0\nb\0\nc\0\n")
    assert result == SourceText("a\ufffd\nb\ufffd\nc\ufffd\n", ("3 NUL characters replaced",))


def test_the_bound_on_nuls_grows_with_the_text() -> None:
    assert isinstance(decode(b"x" * 1981 + b"\0" * 19), SourceText)
    assert decode(b"x" * 100 + b"\0" * 9) == Unreadable(
        "failed", "looks like a binary file: 9 NUL characters"
    )
