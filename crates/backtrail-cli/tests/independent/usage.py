"""Counts usage in the raw files of Claude Code and Codex, independently of Backtrail.

Prints tokens by day (UTC) and model, calls by tool, and blocks of five hours. A response of Claude
Code is all lines with its message id; its last usage and its first time count. A response of Codex
is a token_count event whose total differs from the one before; its time is that of the event.
"""

import datetime
import json
import pathlib
import sys

HOUR = 3_600_000


def lines(path):
    for line in path.read_text(errors="replace").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass


def millis(text):
    time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(time.timestamp() * 1000)


def claude(path, calls, tools):
    for line in lines(path):
        # A sub-agent's message is in a record of progress.
        if line.get("type") == "progress":
            line = line["data"].get("message") or {}
        message = line.get("message") or {}
        if line.get("type") != "assistant" or message.get("model") == "<synthetic>":
            continue
        for part in message["content"]:
            if part["type"] == "tool_use":
                tools[part["id"]] = part["name"]
        at, usage = millis(line["timestamp"]), message["usage"]
        first = calls.get(message["id"], (at,))[0]
        calls[message["id"]] = (
            min(at, first), message["model"], usage["input_tokens"], usage["output_tokens"],
            usage.get("cache_read_input_tokens") or 0, usage.get("cache_creation_input_tokens") or 0,
        )


def codex(path, calls, tools):
    model, before = None, None
    for n, line in enumerate(lines(path)):
        payload = line.get("payload") or {}
        kind = payload.get("type")
        if line.get("type") == "turn_context":
            model = payload["model"]
        elif kind in ("function_call", "custom_tool_call"):
            tools[payload["call_id"]] = payload["name"]
        elif kind == "token_count" and payload.get("info"):
            total, used = payload["info"]["total_token_usage"], payload["info"]["last_token_usage"]
            if total != before:
                cached = used.get("cached_input_tokens") or 0
                fresh = used["input_tokens"] - cached
                calls[path.name, n] = (
                    millis(line["timestamp"]), model, fresh, used["output_tokens"], cached, 0,
                )
            before = total


def day(at):
    return datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc).date().isoformat()


def blocks(calls):
    found = []
    for at, tokens in sorted((call[0], sum(call[2:])) for call in calls):
        if not found or at >= found[-1]["start"] + 5 * HOUR:
            found.append(dict(start=at - at % HOUR, calls=0, tokens=0))
        found[-1]["calls"] += 1
        found[-1]["tokens"] += tokens
    return found


def main():
    calls, tools = {}, {}
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        (codex if path.name.startswith("rollout-") else claude)(path, calls, tools)
    days, names = {}, {}
    for at, model, *tokens in calls.values():
        sums = days.setdefault(f"{day(at)} {model}", [0, 0, 0, 0])
        sums[:] = [a + b for a, b in zip(sums, tokens)]
    for name in tools.values():
        names[name] = names.get(name, 0) + 1
    json.dump(dict(days=days, tools=names, blocks=blocks(calls.values())), sys.stdout)


main()
