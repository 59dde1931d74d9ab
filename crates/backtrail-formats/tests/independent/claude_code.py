#!/usr/bin/env python3
"""Counts what is in files of Claude Code, from the description of the format alone.

Prints one JSON object: for each file that is named, its session, how many messages,
tool calls and results it has (each uuid once, those of sub-agents in progress records
included), the tokens of all responses (the last usage of each message id), and the uuids
that lead from the end of the conversation back to its beginning.
"""

import json
import os
import re
import sys

UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
COUNTERS = [
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
]


def records(path):
    """Yields the objects of a file: its lines, the one that it is, or those of an export."""
    text = open(path, encoding="utf-8", errors="replace").read()
    try:
        whole = json.loads(text)
        if isinstance(whole, dict):
            return whole.get("loglines") or [whole]
    except ValueError:
        pass
    found = []
    for line in text.split("\n"):
        try:
            found.append(json.loads(line.strip("\0 \r\t")))
        except ValueError:
            pass
    return [record for record in found if isinstance(record, dict)]


def is_message(record):
    said = record.get("type") in ("user", "assistant")
    return said and isinstance(record.get("message"), dict)


def queued(record):
    """Whether a record is a prompt that waited while the model was at work."""
    attachment = record.get("attachment")
    return (
        record.get("type") == "attachment"
        and isinstance(attachment, dict)
        and attachment.get("type") == "queued_command"
        and "prompt" in attachment
    )


def nested(record):
    """Returns the messages of a sub-agent that a progress record carries."""
    data = record.get("data")
    if record.get("type") != "progress" or not isinstance(data, dict):
        return []
    carried = list(data.get("normalizedMessages") or [])
    carried.append(data.get("message"))
    return [one for one in carried if isinstance(one, dict) and is_message(one)]


def blocks(record, kind):
    content = record["message"].get("content")
    if not isinstance(content, list):
        return []
    return [b for b in content if isinstance(b, dict) and b.get("type") == kind]


def main_line(all_records):
    """Walks from the last turn to its root over parentUuid; at a compact boundary it
    goes on with what was said last before it."""
    known, before, last = {}, {}, None
    for record in all_records:
        uuid = record.get("uuid")
        chained = record.get("type") in (
            "user",
            "assistant",
            "attachment",
            "system",
            "progress",
        )
        if not uuid or not chained or record.get("isSidechain"):
            continue
        known[uuid] = record
        before[uuid] = last
        turn = is_message(record) and not record.get("isMeta")
        if turn and not blocks(record, "tool_result") and "toolUseResult" not in record:
            if not record.get("isCompactSummary"):
                last = uuid
    path, seen, at = [], set(), last
    while at and at not in seen:
        seen.add(at)
        record = known[at]
        if is_message(record):
            path.append(at)
        parent = record.get("parentUuid")
        if record.get("subtype") == "compact_boundary" and parent is None:
            parent = before[at]
        at = parent if parent in known else None
    return path[::-1]


def count(path):
    messages, calls, results, used, sessions = set(), set(), set(), {}, []
    all_records = records(path)
    for n, record in enumerate(all_records):
        if record.get("sessionId"):
            sessions.append(record["sessionId"])
        own = [record] if is_message(record) else []
        if queued(record):
            messages.add(("uuid", record.get("uuid"), json.dumps(record, sort_keys=True)))
        for said in own + nested(record):
            uuid = said.get("uuid")
            # Another line with the same uuid is another message.
            name = json.dumps(said, sort_keys=True) if said is record else ""
            messages.add(("uuid", uuid, name) if uuid else ("line", n))
            calls |= {b.get("id", "") for b in blocks(said, "tool_use")}
            results |= {b["tool_use_id"] for b in blocks(said, "tool_result") if "tool_use_id" in b}
            message = said["message"]
            usage = message.get("usage")
            if said["type"] == "assistant" and isinstance(usage, dict):
                if message.get("model") != "<synthetic>":
                    used[message.get("id") or said.get("requestId") or ("line", n)] = usage
    stem = os.path.basename(path).rsplit(".", 1)[0]
    session = stem if UUID.match(stem) else (sessions or [None])[0]
    if "/subagents/" in path:
        session = path.split("/subagents/")[0].rsplit("/", 1)[-1]
    return {
        "session": session,
        "messages": len(messages),
        "uuids": sorted({name[1] for name in messages if name[0] == "uuid" and name[1]}),
        "calls": len(calls),
        "results": len(results),
        "tokens": [sum(u.get(name) or 0 for u in used.values()) for name in COUNTERS],
        "main": main_line(all_records),
    }


print(json.dumps({path: count(path) for path in sys.argv[1:]}))
