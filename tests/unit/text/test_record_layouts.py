"""Decision records: fields in lines, tables, lists of terms and attributes, of every format."""

from __future__ import annotations

from datetime import date

import pytest

from concordance.models import AdrStatus
from concordance.text.formats import parse
from concordance.text.records import Record, read_record

FIFTH = date(2023, 1, 5)


def record(text: str, name: str = "0001-x.md") -> Record:
    return read_record(text, parse(name, text))


@pytest.mark.parametrize(
    "text",
    [
        "状态：已接受\n日期：2023年1月5日",
        "**状态**：已接受\n\n**日期**：2023年1月5日",
        "**状态：**已接受\n\n**日期：**2023年1月5日",
        "- 状态：已接受\n- 日期：2023-01-05",
        "状态:已接受\n日期:2023-01-05",
        "状态：已接受\u3000日期：2023年1月5日",
        "状态：已接受，日期：2023年1月5日",
        "| 状态 | 已接受 |\n|---|---|\n| 日期 | 2023年1月5日 |",
        "## 状态：已接受\n\n## 日期：2023年1月5日",
        "ステータス：承認済み\n日付：2023年1月5日",
        "상태：승인됨\n날짜：2023년 1월 5일",
        "상태: 승인됨\n날짜: 2023. 1. 5.",
        "Status：Accepted\nDate：2023-01-05",
        "Status:Accepted\nDate:2023-01-05",
    ],
)
def test_full_width_signs_and_no_space(text: str) -> None:
    said = record(f"# X\n\n{text}\n\n## 背景\n\nText.\n")
    assert (said.status, said.date) == (AdrStatus.ACCEPTED, FIFTH)


@pytest.mark.parametrize(
    "text",
    [
        "**Status** accepted\n**Date** 2023-01-05",
        "* **Status** Accepted\n* **Date** 2023-01-05",
        "**Status** - accepted\n**Date** - 2023-01-05",
        "Status - Accepted\nDate - 2023-01-05",
        "**Status**\n\nAccepted\n\n**Date**\n\n2023-01-05",
        "<b>Status:</b> Accepted<br><b>Date:</b> 2023-01-05",
        "<b>Status</b> Accepted\n<b>Date</b> 2023-01-05",
        "<p>Status: Accepted</p>\n<p>Date: 2023-01-05</p>",
        "<ul>\n<li>Status: Accepted</li>\n<li>Date: 2023-01-05</li>\n</ul>",
        "<h2>Status</h2>\n<p>Accepted</p>\n<h2>Date</h2>\n<p>2023-01-05</p>",
        "<dl><dt>Status</dt><dd>Accepted</dd><dt>Date</dt><dd>2023-01-05</dd></dl>",
        "<dl>\n<dt>Status\n<dd>Accepted\n<dt>Date\n<dd>2023-01-05\n</dl>",
        (
            "<table><tr><td>Status</td><td>Accepted</td></tr>"
            "<tr><td>Date</td><td>2023-01-05</td></tr></table>"
        ),
        (
            "<table>\n<tr>\n<th><b>Status</b></th>\n<td>Accepted</td>\n</tr>\n"
            "<tr>\n<th>Date</th>\n<td>2023-01-05</td>\n</tr>\n</table>"
        ),
        (
            "<table>\n<thead><tr><th>Date</th><th>Status</th></tr></thead>\n"
            "<tbody>\n<tr><td>2023-01-05</td><td>Accepted</td></tr>\n</tbody></table>"
        ),
        (
            "<table>\n<tr>\n\n<td>Status</td>\n\n<td>Accepted</td>\n\n</tr><tr>\n\n<td>Date</td>\n\n"
            "<td>2023-01-05</td></tr></table>"
        ),
        "Status\n:   Accepted\n\nDate\n:   2023-01-05",
        "| Author | Status | Date |\n|---|---|---|\n| Ada | Accepted | 2023-01-05 |",
    ],
)
def test_labels_tables_and_terms(text: str) -> None:
    said = record(f"# X\n\n{text}\n\n## Context\n\nText.\n")
    assert (said.status, (said.status_text or "").lower()) == (AdrStatus.ACCEPTED, "accepted")
    assert said.date == FIFTH


@pytest.mark.parametrize(
    "text",
    [
        (
            ".. list-table::\n   :widths: 2 8\n\n   * - Status\n     - Accepted\n   * - Date\n"
            "     - 2023-01-05\n"
        ),
        (
            ".. list-table:: Meta\n   :header-rows: 1\n\n   * - Date\n     - Status\n"
            "   * - 2023-01-05\n     - Accepted\n"
        ),
        '.. csv-table::\n   :header: "Date", "Status"\n\n   "2023-01-05", "Accepted"\n',
        (
            ".. table::\n\n   ======  ========\n   Status  Accepted\n   Date    2023-01-05\n"
            "   ======  ========\n"
        ),
        "======  ==========\nStatus  Accepted\nDate    2023-01-05\n======  ==========\n",
        (
            "==========  ========\nDate        Status\n==========  ========\n2023-01-05  Accepted\n"
            "==========  ========\n"
        ),
        (
            "+--------+------------+\n| Status | Accepted   |\n+--------+------------+\n"
            "| Date   | 2023-01-05 |\n+--------+------------+\n"
        ),
        ":Status:\n    Accepted\n:Date:\n    2023-01-05\n",
        "Status\n    Accepted\nDate\n    2023-01-05\n",
        "..\n   Status: rejected\n\nStatus: Accepted\n\nDate: 2023-01-05\n",
    ],
)
def test_tables_and_fields_of_rst(text: str) -> None:
    said = record(f"X\n=\n\n{text}\nContext\n-------\n\nText.\n", "x.rst")
    assert (said.status, said.status_text, said.date) == (AdrStatus.ACCEPTED, "Accepted", FIFTH)


@pytest.mark.parametrize(
    "text",
    [
        ":status: Accepted\n:revdate: 2023-01-05\n",
        '\n[cols="1,3"]\n|===\n|Status\n|Accepted\n\n|Date\n|2023-01-05\n|===\n',
        "\n|===\n|Status\n|Accepted\n\n|Date\n|2023-01-05\n|===\n",
        "\n|===\n|Status |Accepted\n|Date |2023-01-05\n|===\n",
        '\n[cols="1h,3a"]\n|===\n|Status|Accepted\nh|Date a|2023-01-05\n|===\n',
        "\n|===\n|Date |Status\n\n|2023-01-05\n|Accepted\n|===\n",
        "\n[%header,cols=2*]\n|===\n|Date\n|Status\n|2023-01-05\n|Accepted\n|===\n",
        "\n,===\nStatus,Accepted\nDate,2023-01-05\n,===\n",
        "\nStatus:: Accepted\nDate:: 2023-01-05\n",
        "\nStatus::\n  Accepted\nDate::\n  2023-01-05\n",
        "\n*Status:* Accepted +\n*Date:* 2023-01-05\n",
        "\n.Status\nAccepted\n\n.Date\n2023-01-05\n",
    ],
)
def test_tables_and_attributes_of_asciidoc(text: str) -> None:
    said = record(f"= X\n{text}\n== Context\n\nText.\n", "x.adoc")
    assert (said.status, said.status_text, said.date) == (AdrStatus.ACCEPTED, "Accepted", FIFTH)


def test_prose_and_comments_are_no_fields() -> None:
    for text in (
        "**Status** quo is bad",
        "**Date** of birth",
        "Status of things - accepted by many",
        "<!--\nStatus: accepted\n-->",
    ):
        assert record(f"# X\n\n{text}\n\n## Context\n\nText.\n").silent, text


def test_a_list_of_records_says_nothing_of_its_page() -> None:
    rows = "| 1 | X | accepted |\n| 2 | Y | rejected |\n"
    assert record(f"# All\n\n| ADR | Title | Status |\n|---|---|---|\n{rows}").silent
    assert record("# All\n\n| ADR | Title | Status |\n|---|---|---|\n| 1 | X | accepted |\n").silent
