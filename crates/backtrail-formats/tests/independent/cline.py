"""Reads a session of Cline's command line, by the format's description alone."""
import datetime
import json
import os
import re

SAMPLES = [
    "agents/samples/cline/sessions/*/*.messages.json",
    "samples/cline/*.messages.json",
    "samples/cline/*.compaction.json",
]
ENDING = ".messages.json"


def millis(time):
    if isinstance(time, (int, float)):
        return int(time)
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def is_failure(block):
    content = block.get("content")
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except ValueError:
            return bool(block.get("is_error"))
    parts = content if isinstance(content, list) else [content]
    bad = any(isinstance(part, dict) and part.get("success") is False for part in parts)
    return bad or bool(block.get("is_error"))


def read(path):
    data = json.load(open(path, encoding="utf-8"))
    manifest = {}
    if path.endswith(ENDING) and os.path.exists(path[: -len(ENDING)] + ".json"):
        manifest = json.load(open(path[: -len(ENDING)] + ".json", encoding="utf-8"))
    out = dict(session=data["sessionId"], messages=0, prompts=0, answers=0, calls=0, results=0, failed=0,
               compactions=0, input=0, output=0, cache_read=0, cache_write=0, cost=0.0,
               cwd=manifest.get("cwd"), title=manifest.get("metadata", {}).get("title"), threads=1)
    model, prompts, answers, times = manifest.get("model"), [], [], []
    out["messages"] += bool(data.get("system_prompt"))
    for message in data["messages"]:
        kind = message.get("metadata", {}).get("kind")
        if kind in ("compaction", "compaction_summary"):
            out["compactions"] += 1
            times.append(message["metadata"].get("generatedAt", message.get("ts")))
        if kind == "compaction_summary":
            continue
        times.append(millis(message["ts"]))
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [dict(type="text", text=blocks)]
        if message["role"] == "assistant":
            out["messages"] += 1
            answers += [b["text"] for b in blocks if b["type"] == "text" and b["text"].strip()]
            out["calls"] += sum(b["type"] == "tool_use" for b in blocks)
            model = message.get("modelInfo", {}).get("id", model)
            used = message.get("metrics", {})
            read_, write = used.get("cacheReadTokens", 0), used.get("cacheWriteTokens", 0)
            out["input"] += used.get("inputTokens", 0) - read_ - write
            out["output"] += used.get("outputTokens", 0)
            out["cache_read"] += read_
            out["cache_write"] += write
            out["cost"] += used.get("cost", 0.0)
            continue
        results = [b for b in blocks if b["type"] == "tool_result"]
        out["messages"] += len(results)
        out["results"] += len(results)
        out["failed"] += sum(is_failure(b) for b in results)
        typed = [b for b in blocks if b["type"] != "tool_result"]
        notices = [b for b in typed if b.get("text", "").startswith("<SYSTEM_NOTICE>")]
        own = [b for b in typed if b not in notices]
        out["messages"] += bool(notices) + bool(own)
        out["prompts"] += bool(own)
        for block in own:
            if block["type"] == "text":
                inner = re.fullmatch(r'\s*<user_input mode="\w+">(.*)</user_input>\s*', block["text"], re.S)
                prompts.append(inner.group(1).strip() if inner else block["text"])
    out["answers"], out["model"] = len(answers), model
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"] = (times[0], times[-1]) if times else (None, None)
    return [out]
