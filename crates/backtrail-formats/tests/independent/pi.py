"""Reads a session file of pi, by the format's description alone."""
import datetime
import json

SAMPLES = ["agents/samples/pi/*.jsonl", "samples/pi/*.jsonl", "samples/matrix-agent-sessions/pi/*.jsonl"]


def millis(time):
    if isinstance(time, (int, float)):
        return int(time)
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def read(path):
    entries = []
    for line in open(path, encoding="utf-8", errors="replace"):
        try:
            entries.append(json.loads(line))
        except ValueError:
            pass
    header = entries[0]
    body = [entry for entry in entries if entry["type"] != "session"]
    if header.get("version", 1) < 2:
        way = body
    else:
        by_id = {entry["id"]: entry for entry in body}
        way, at = [], body[-1] if body else None
        while at is not None:
            way.append(at)
            at = by_id.get(at["parentId"])
        way.reverse()

    out = dict(session=header["id"], messages=0, prompts=0, answers=0, calls=0, results=0, failed=0,
               compactions=0, input=0, output=0, cache_read=0, cache_write=0, cost=0.0,
               cwd=header["cwd"])
    prompts, answers, times, model, title = [], [], [], header.get("modelId"), None
    for entry in body:
        if entry["type"] == "session_info" and entry.get("name"):
            title = entry["name"]
    for entry in way:
        if entry["type"] == "model_change":
            model = entry.get("modelId") or model
        if entry["type"] == "compaction":
            out["compactions"] += 1
            times.append(millis(entry["timestamp"]))
        if entry["type"] in ("custom_message", "branch_summary"):
            out["messages"] += 1
            times.append(millis(entry["timestamp"]))
        if entry["type"] != "message":
            continue
        message = entry["message"]
        content = message.get("content") or []
        if isinstance(content, str):
            content = [dict(type="text", text=content)]
        texts = [part["text"] for part in content if part["type"] == "text"]
        out["messages"] += 1
        times.append(millis(entry["timestamp"]))
        if message["role"] == "user":
            out["prompts"] += 1
            prompts.extend(texts)
        if message["role"] == "toolResult":
            out["results"] += 1
            out["failed"] += bool(message.get("isError"))
        if message["role"] == "assistant":
            answers.extend(text for text in texts if text.strip())
            out["calls"] += sum(part["type"] == "toolCall" for part in content)
            model = message.get("model") or model
            usage = message["usage"]
            out["input"] += usage["input"]
            out["output"] += usage["output"]
            out["cache_read"] += usage["cacheRead"]
            out["cache_write"] += usage["cacheWrite"]
            out["cost"] += usage["cost"]["total"]
    out["answers"] = len(answers)
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"] = (times[0], times[-1]) if times else (None, None)
    out["model"], out["title"] = model, title
    return [out]
