"""Counts what Codex rollouts say: a second reader, to check the first by.

Usage: codex.py FILE...   Prints {"FILE": {...}, ...}.

It reads a file whole, in the plainest way: what was said is counted from the items
that went to the model; where a file has none of a kind, from the events.
"""

import json
import re
import sys

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OWN = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<permissions instructions>",
)
CALLS = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "image_generation_call",
    "tool_call",
)
RESULTS = (
    "function_call_output",
    "custom_tool_call_output",
    "tool_search_output",
    "tool_result",
    "function_result",
)


def records(path):
    damaged = 0
    found = []
    with open(path, "rb") as file:
        for line in file.read().split(b"\n"):
            if not line.strip():
                continue
            try:
                found.append(json.loads(line))
            except ValueError:
                damaged += 1
                last = line
        if damaged and not line.strip() == b"" and line == last:
            damaged -= 1  # Half a line at the end may still be written.
    return found, damaged


def text(content):
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or "" for part in content or [])


def is_own_doing(message):
    parts = message.get("content")
    parts = [parts] if isinstance(parts, str) else [p.get("text") for p in parts or []]
    return bool(parts) and all((p or "").lstrip().startswith(OWN) for p in parts)


def tokens(usage):
    cached = usage.get("cached_input_tokens") or 0
    written = usage.get("cache_write_input_tokens") or 0
    return {
        "input": usage.get("input_tokens", 0) - cached - written,
        "cache_read": cached,
        "cache_creation": written,
        "output": usage.get("output_tokens", 0),
        "reasoning": usage.get("reasoning_output_tokens") or 0,
    }


def read(path):
    found, damaged = records(path)
    metas = [r["payload"] for r in found if r.get("type") == "session_meta"]
    meta = metas[0] if found and found[0].get("type") == "session_meta" else {}
    start = meta.get("subagent_history_start_ordinal") or 0

    items, events, counts = [], [], []
    for record in found:
        payload = record.get("payload")
        copied = (record.get("ordinal") or 0) < start
        if payload is None:
            items.append((record, copied))
        elif record["type"] == "response_item":
            items.append((payload, copied))
        elif record["type"] == "event_msg":
            if payload["type"] == "item_completed":
                events.append(({"kind": payload["item"]["type"]}, copied))
            elif payload["type"] == "token_count":
                counts.append((payload.get("info"), copied))
            else:
                events.append(({"kind": payload["type"]}, copied))

    out = {
        "session": meta.get("id"),
        "damaged": damaged,
        "user": 0,
        "prompts": 0,
        "assistant": 0,
        "system": 0,
        "thinking": 0,
        "calls": 0,
        "results": 0,
        "failed": 0,
        "compactions": sum(r.get("type") == "compacted" for r in found),
        "responses": 0,
        "input": 0,
        "cache_read": 0,
        "cache_creation": 0,
        "output": 0,
        "reasoning": 0,
    }
    for item, copied in items:
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message" and item.get("role") == "user":
            out["user"] += 1
            out["prompts"] += not is_own_doing(item) and not copied
        elif kind == "message" and item.get("role") == "assistant":
            out["assistant"] += 1
        elif kind == "message":
            out["system"] += 1
        elif kind == "agent_message":
            out["user"] += 1
        elif kind == "reasoning":
            out["thinking"] += 1
        elif kind in CALLS:
            out["calls"] += 1
        elif kind in RESULTS:
            out["results"] += 1
            said = str(item.get("output"))
            code = re.match(r'\{"output":.*"exit_code":(-?\d+)', said, re.S)
            code = code or re.match(r"(?:(?!Output:).)*exited with code (-?\d+)", said, re.S)
            out["failed"] += bool(code) and int(code.group(1)) != 0
            out["failed"] += said.startswith(("failed in sandbox", "execution error"))
    of = lambda *kinds: sum(e["kind"] in kinds for e, _ in events)
    if out["prompts"] == 0 and not start:
        out["prompts"] = of("user_message", "UserMessage")
        out["user"] += out["prompts"]
    if out["assistant"] == 0:
        out["assistant"] += of("agent_message", "AgentMessage")
    out["assistant"] += of("Plan")
    if out["thinking"] == 0:
        out["thinking"] += of("agent_reasoning", "Reasoning")

    before = None
    for info, copied in counts:
        if not info:
            continue
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        if not copied and total != before:
            if last is None:
                last = {k: v - (before or {}).get(k, 0) for k, v in total.items()}
            used = tokens(last)
            if any(used.values()):
                out["responses"] += 1
                for name, number in used.items():
                    out[name] += number
        before = total or before
    return out


if __name__ == "__main__":
    json.dump({path: read(path) for path in sys.argv[1:]}, sys.stdout, indent=1)
