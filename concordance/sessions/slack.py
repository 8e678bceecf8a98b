"""Reader of Slack's export: `CHANNEL/YYYY-MM-DD.json`, a list of messages a day.

What counts as said: the text of people and of bots. The session is the channel; a thread in it is
told apart by its first message. Channels of two workspaces may have one name: where a project has
several exports, the export's folder is part of the session's id.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from concordance.sessions.documents import Broken, read_document
from concordance.sessions.events import Event, LeftOut, LineProblem, LogContent, SessionNote
from concordance.sessions.lines import (
    Json,
    LineError,
    entries,
    kind,
    moment,
    string,
    table,
)
from concordance.sessions.reader import (
    LogContext,
    NotThisFormat,
    Reader,
    Sample,
    whole_document,
)
from concordance.sessions.slack_blocks import in_blocks

USERS: Final = "../users.json"
_SAID: Final = ("", "bot_message", "thread_broadcast", "me_message", "file_share", "file_comment")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.json")
_BESIDE: Final = (
    *("users.json", "channels.json", "groups.json", "dms.json", "mpims.json"),
    *("integration_logs.json", "org_users.json", "canvases.json", "lists.json"),
)
_NO_PREVIEW: Final = "[no preview available]"
# Reminders and notices of Slack itself.
_SLACKBOT: Final = "USLACKBOT"
# `<@U2>`, `<@U2|bo>`, `<#C1|general>`, `<!here>`, `<https://x|this>`
_MARKED: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def read_slack(data: bytes, context: LogContext) -> LogContent:
    """What people and bots said in a channel on a day, with names in place of ids."""
    if context.path.name in _BESIDE:
        return LogContent((), beside="it stands beside the channels of an export")
    document = whole_document(data)
    whole = document.value
    if not isinstance(whole, list):
        raise NotThisFormat("a JSON document that is no list of messages")
    channel = context.folder_id
    names = _names(context.beside)
    events: list[Event] = []
    problems: list[LineProblem] = []
    left_out = LeftOut()
    for number, message in enumerate(whole, start=1):
        if not isinstance(message, dict) or not string(message.get("ts")):
            told = message.reason if isinstance(message, Broken) else "no message: it has no 'ts'"
            problems.append(LineProblem(number, told, unit="entry"))
            continue
        why = _left_out(message)
        text = None if why else _text(message, names)
        if text is None:
            left_out.add(why or "nothing said")
            continue
        events.append(_event(channel, message, text, names))
    notes = (SessionNote(channel, f"#{context.folder}"),)
    return LogContent(tuple(events), tuple(problems), left_out.counts, notes, cut=document.cut)


def _event(channel: str, message: Json, text: str, names: Mapping[str, str]) -> Event:
    at = string(message["ts"]) or ""
    bot = kind(message, "subtype") == "bot_message" or bool(string(message.get("bot_id")))
    return Event(
        session_id=channel,
        event_id=at,
        speaker="agent" if bot else "human",
        text=text,
        occurred_at=_time(at),
        author=_author(message, names),
        thread=string(message.get("thread_ts")),
    )


def _left_out(message: Json) -> str | None:
    if kind(message) != "message":
        return f"type {kind(message)}" if kind(message) else "no type"
    subtype = kind(message, "subtype")
    if subtype not in _SAID:
        return subtype
    if kind(message, "user") == _SLACKBOT:
        return "Slackbot"
    return "hidden" if message.get("hidden") is True else None


def _text(message: Json, names: Mapping[str, str]) -> str | None:
    """The text as a reader sees it; a bot's may stand in what it attached."""
    text = string(message.get("text"))
    if text is None:
        attached = map(_attached, entries(message.get("attachments")))
        text = in_blocks(message.get("blocks")) or string("\n\n".join(filter(None, attached)))
    if text is None:
        return None
    shown = _MARKED.sub(lambda found: _shown(found, names), text)
    return string(html.unescape(shown))


def _attached(attachment: object) -> str | None:
    """The words of an attachment; what stands in place of those that Slack can't show is none."""
    one = table(attachment)
    fallback = string(one.get("fallback"))
    shown = None if fallback == _NO_PREVIEW else fallback
    return string(one.get("text")) or in_blocks(one.get("blocks")) or shown


def _shown(found: re.Match[str], names: Mapping[str, str]) -> str:
    sign, target, label = found[1], found[2], found[3]
    if sign == "@":
        return f"@{names.get(target) or label or target}"
    if sign == "#":
        return f"#{label or target}"
    if sign == "!":
        return f"@{label or target}".replace("@@", "@")
    return f"{label} ({target})" if label and label != target else target


def _author(message: Json, names: Mapping[str, str]) -> str | None:
    user = string(message.get("user")) or ""
    profile = table(message.get("user_profile"))
    return (
        names.get(user)
        or string(profile.get("real_name"))
        or string(message.get("username"))
        or string(table(message.get("bot_profile")).get("name"))
        or user
        or string(message.get("bot_id"))
    )


def _names(beside: Mapping[str, bytes]) -> dict[str, str]:
    """The names of users by their ids, where the list of users could be read."""
    try:
        users = read_document(beside.get(USERS, b"[]")).value
    except LineError:
        return {}
    found = {}
    for user in entries(users):
        profile = table(table(user).get("profile"))
        name = (
            string(table(user).get("real_name"))
            or string(profile.get("real_name"))
            or string(table(user).get("name"))
        )
        if name and kind(user, "id"):
            found[kind(user, "id")] = name
    return found


def _time(at: str) -> datetime | None:
    try:
        return moment(float(at))
    except ValueError:
        return None


def _recognises(sample: Sample) -> bool:
    found = [table(entry) for entry in entries(sample.document)]
    if sample.path.name in _BESIDE:
        return any("id" in entry or "user_id" in entry for entry in found) or sample.document == []
    if sample.document == [] and _DAY.fullmatch(sample.path.name):
        return True
    return any(kind(entry) == "message" and kind(entry, "ts") for entry in found)


READER = Reader(
    name="slack",
    about="an export of Slack",
    patterns=("**/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].json",),
    recognises=_recognises,
    read=read_slack,
    version=4,
    beside=(USERS,),
    in_exports=True,
    aside=_BESIDE,
)
