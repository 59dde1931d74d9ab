"""Reads a rollout of Codex, by the format's description alone.

It reads a file whole, in the plainest way: what was said is taken from the items that went to the
model; where a file has none of a kind, from the events for the screen.
"""
import datetime
import json
import os
import re

SAMPLES = [
    "agents/samples/codex/**/rollout-*.jsonl",
    "samples/codex/**/*.json",
    "samples/codex/**/*.jsonl",
    "samples/matrix-agent-sessions/codex/**/*.jsonl",
]

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NAMED = re.compile(rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({UUID})(?:_({UUID}))?\.")
OWN = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>",
       "<permissions instructions>")
CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call",
         "tool_search_call", "image_generation_call", "tool_call")
RESULTS = ("function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result",
           "function_result")
FAILED = ("failed in sandbox", "execution error", "exec_command failed", "patch rejected",
          "apply_patch verification failed")


def records(path):
    text = open(path, encoding="utf-8", errors="replace").read()
    try:
        whole = json.loads(text)
        if isinstance(whole, dict) and "items" in whole:
            return [whole["session"]] + whole["items"]
    except ValueError:
        pass
    found = []
    for line in text.split("\n"):
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


def millis(time):
    try:
        time = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return None
    return int(time.timestamp() * 1000 + 1e-6)


def parts(message):
    content = message.get("content") or message.get("message")
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if isinstance(part.get("text"), str)]


def is_own_doing(message):
    kinds = (message.get("internal_chat_message_metadata_passthrough") or {}).get("content_item_kinds")
    if kinds and any(kind.startswith("user.") for kind in kinds):
        return False
    texts = parts(message)
    return bool(texts) and all(text.lstrip().startswith(OWN) for text in texts)


def is_failed(item, ended):
    said = item.get("output", item.get("result"))
    if isinstance(said, dict):
        return bool(said.get("exitCode") or said.get("exit_code")) or said.get("success") is False
    if isinstance(said, list):
        said = (said[0].get("text") or "") if said else ""
    said = str(said)
    code = re.match(r'\{"output":.*"exit_code":(-?\d+)', said, re.S)
    code = code or re.match(r"(?:(?!Output:).)*(?:exited with code|Exit code:) (-?\d+)", said, re.S)
    aborted = re.match(r"(?:Wall time: .*\n)?aborted by user", said)
    bad_code = bool(code) and int(code.group(1)) != 0
    return bad_code or bool(aborted) or said.startswith(FAILED) or ended.get(item.get("call_id"), False)


def tokens(usage):
    cached = usage.get("cached_input_tokens") or 0
    written = usage.get("cache_write_input_tokens") or 0
    return {
        "input": usage.get("input_tokens", 0) - cached - written,
        "cache_read": cached,
        "cache_write": written,
        "output": usage.get("output_tokens", 0),
    }


def title(path, thread, found):
    """Returns the name in the index, or in the file."""
    home = path
    while os.path.dirname(home) != home:
        home = os.path.dirname(home)
        if os.path.basename(home) in ("sessions", "archived_sessions"):
            break
    index, name = os.path.join(os.path.dirname(home), "session_index.jsonl"), None
    if os.path.exists(index):
        for line in open(index, encoding="utf-8"):
            row = json.loads(line)
            name = row["thread_name"] if row["id"] == thread else name
    for record in found:
        payload = record.get("payload") or {}
        is_own = payload.get("thread_id") in (None, thread)
        if name is None and is_own and payload.get("type") == "thread_name_updated":
            name = payload.get("thread_name")
    return name


class Reading:
    """The conversation so far: (kind, time, texts) for each thing that was said."""

    def __init__(self):
        self.said, self.used, self.ended = [], [], {}

    def add(self, kind, at, texts=()):
        self.said.append((kind, at, list(texts)))

    def roll_back(self, turns):
        for _ in range(turns):
            starts = [n for n, (kind, _, _) in enumerate(self.said) if kind == "prompt"]
            if starts:
                del self.said[starts[-1]:]

    def item(self, item, at, copied):
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message" and item.get("role") == "user":
            self.add("own" if is_own_doing(item) or copied else "prompt", at, parts(item))
        elif kind == "message" and item.get("role") == "assistant":
            self.add("answer", at, parts(item))
        elif kind in ("message", "agent_message"):
            self.add("own", at)
        elif kind == "reasoning":
            self.add("thinking", at)
        elif kind in CALLS:
            self.add("call", at)
        elif kind in RESULTS:
            self.add("failed" if is_failed(item, self.ended) else "result", at)


SHOWN = {"user_message": "prompt", "UserMessage": "prompt", "agent_message": "answer",
         "AgentMessage": "answer", "agent_reasoning": "thinking", "Reasoning": "thinking"}


def event(reading, payload, at, is_needed):
    item = payload.get("item") or {}
    kind = payload["type"] if payload["type"] != "item_completed" else item.get("type")
    bad = item.get("status") in ("failed", "declined") or payload.get("success") is False
    reading.ended[item.get("id") or payload.get("call_id")] = bad or bool(payload.get("exit_code"))
    if kind in SHOWN and is_needed(SHOWN[kind]):
        texts = parts(item) if item else [payload.get("message") or payload.get("text") or ""]
        reading.add(SHOWN[kind], at, texts)
    if kind == "Plan":
        reading.add("answer", at, [item.get("text") or ""])
    if kind == "thread_rolled_back":
        reading.roll_back(payload.get("num_turns") or 0)


def read(path):
    found = records(path)
    if os.path.basename(path) == "session_index.jsonl" or not found:
        return []
    first = found[0]
    is_meta = first.get("type") == "session_meta"
    meta = first["payload"] if is_meta else first if "type" not in first and "id" in first else {}
    start = meta.get("subagent_history_start_ordinal") or 0
    items = [record.get("payload") or record for record in found
             if record.get("type") == "response_item" or "payload" not in record]
    kinds = {item.get("type", "message" if "role" in item else None) for item in items}
    roles = {item.get("role") for item in items if not is_own_doing(item)}
    has = {"prompt": "user" in roles, "answer": "assistant" in roles, "thinking": "reasoning" in kinds}

    reading, model, cwd, before = Reading(), None, meta.get("cwd"), None
    for record in found:
        payload, kind = record.get("payload"), record.get("type")
        time = record.get("timestamp") or record.get("created_at")
        at = millis(time)
        copied = (record.get("ordinal") or 0) < start
        if payload is None:
            reading.item(record, at, copied)
        elif kind == "response_item":
            reading.item(payload, at, copied)
        elif kind == "event_msg" and payload["type"] == "token_count":
            info = payload.get("info") or {}
            total, last = info.get("total_token_usage"), info.get("last_token_usage")
            if total and not copied and total != before:
                if last is None:
                    last = {k: v - (before or {}).get(k, 0) for k, v in total.items()}
                if any(tokens(last).values()):
                    reading.used.append(tokens(last))
                    reading.add("usage", at)
            before = total or before
        elif kind == "event_msg":
            event(reading, payload, at, lambda shown: not has[shown])
        elif kind == "turn_context":
            model, cwd = payload.get("model") or model, cwd or payload.get("cwd")
        elif kind == "compacted":
            reading.add("compaction", at)
        if cwd is None and "<cwd>" in json.dumps(record):
            cwd = re.search(r"<cwd>(.*?)</cwd>", json.dumps(record)).group(1)

    said = reading.said
    of = lambda *kinds: [entry for entry in said if entry[0] in kinds]
    name = NAMED.match(os.path.basename(path))
    session = meta.get("id") or meta.get("session_id") or (name and name.group(1))
    prompts = [text for entry in of("prompt") for text in entry[2]]
    answers = [text for entry in of("answer") for text in entry[2] if text.strip()]
    times = [entry[1] for entry in said if entry[1] is not None]
    out = dict(
        messages=len(said) - len(of("usage", "compaction")), prompts=len(of("prompt")),
        answers=len(answers), calls=len(of("call")), results=len(of("result", "failed")),
        failed=len(of("failed")), compactions=len(of("compaction")), model=model, cwd=cwd,
        prompt_text="\0".join(prompts), answer_text="\0".join(answers), threads=1,
        title=title(path, session, found),
        first_at=times[0] if times else None, last_at=times[-1] if times else None)
    for field in ("input", "output", "cache_read", "cache_write"):
        out[field] = sum(used[field] for used in reading.used)
    if session:
        out["session"] = f"{session}_{name.group(2)}" if name and name.group(2) else session
    return [out]
