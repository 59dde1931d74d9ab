"""Reads a session file of Qwen Code, by the format's description alone."""
import datetime
import json
import re

SAMPLES = ["agents/samples/qwen/projects/*/chats/*.jsonl", "samples/qwen-code/qwen_code.jsonl",
           "samples/qwen-code/contract/**/chat-records.jsonl",
           "samples/qwen-code/generated-*/projects/*/chats/*.jsonl", "samples/matrix-agent-sessions/qwen/*.jsonl"]


def millis(time):
    if not time[:1].isdigit():
        return None
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def records_of(path):
    decoder, found = json.JSONDecoder(), []
    for line in open(path, encoding="utf-8", errors="replace"):
        line, at = line.strip(), 0
        while at < len(line):
            record, at = decoder.raw_decode(line, at)
            found.append(record)
    return found


def way_to_the_end(records):
    by_id = {}
    for record in records:
        by_id.setdefault(record["uuid"], []).append(record)
    leaves = [record for record in records if not (record.get("subtype") or "").startswith("session_artifact")]
    way, at = [], leaves[-1]["uuid"]
    while at in by_id:
        found = by_id.pop(at)
        way = found + way
        at = found[0]["parentUuid"]
    return way


def failed(record, response):
    call = record.get("toolCallResult") or {}
    shown = call.get("resultDisplay")
    code = shown.get("exitCode") if isinstance(shown, dict) else None
    noted = re.search(r"\nExit Code: (\S+)", str(response.get("output", "")))
    return (call.get("status") in ("error", "cancelled") or "error" in response or code not in (None, 0)
            or (bool(noted) and noted.group(1) not in ("0", "(none)")))


def read(path):
    records = records_of(path)
    out = dict(session=records[0]["sessionId"], messages=0, prompts=0, answers=0, calls=0, results=0, failed=0,
               compactions=0, input=0, output=0, cache_read=0, cache_write=0, cost=0.0, cwd=records[0]["cwd"])
    titles = [record["systemPayload"]["customTitle"] for record in records if record.get("subtype") == "custom_title"]
    out["title"] = titles[-1] if titles else None
    way = way_to_the_end(records)
    ids = {record["uuid"] for record in way}
    left = [record for record in records if record["uuid"] not in ids and record["type"] != "system"]
    out["threads"] = 1 + sum(record["parentUuid"] in ids for record in left)
    prompts, answers, times, model = [], [], [], None
    for record in way:
        event = (record.get("systemPayload") or {}).get("uiEvent") or {}
        if event.get("subagent_name"):
            out["input"] += event["input_token_count"] - event["cached_content_token_count"]
            out["output"] += event["output_token_count"]
            out["cache_read"] += event["cached_content_token_count"]
        if "input_token_count" in event:
            times.append(millis(record["timestamp"]))
        if record["type"] == "system":
            out["compactions"] += record["subtype"] == "chat_compression"
            continue
        parts = record["message"]["parts"]
        texts = [part["text"] for part in parts if "text" in part and not part.get("thought")]
        hooks = [text for text in texts if text.startswith("<qwen:user-prompt-submit-context>")]
        texts = [text for text in texts if text not in hooks]
        out["messages"] += 1 + len(hooks)
        times.append(millis(record["timestamp"]))
        if record["type"] == "user" and record.get("subtype") in (None, "mid_turn_user_message"):
            out["prompts"] += 1
            prompts.extend(texts)
        if record["type"] == "tool_result":
            responses = [part["functionResponse"]["response"] for part in parts]
            out["results"] += len(responses)
            out["failed"] += sum(failed(record, response) for response in responses)
        if record["type"] == "assistant":
            answers.extend(text for text in texts if text.strip())
            out["calls"] += sum("functionCall" in part for part in parts)
            model = record.get("model") or model
            usage = record.get("usageMetadata") or {}
            cached = usage.get("cachedContentTokenCount", 0)
            out["input"] += usage.get("promptTokenCount", 0) - cached
            out["output"] += usage.get("candidatesTokenCount", 0)
            out["cache_read"] += cached
    out["answers"] = len(answers)
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"], out["model"] = times[0], times[-1], model
    return [out]
