"""Reads a session file of Gemini CLI, by the format's description alone.

Messages are those of the conversation; a reply whose tools gave something back counts as two:
the reply, and what came back. What the agent wrote in the user's name is no prompt.
"""
import datetime
import json
import os
import re

SAMPLES = ["agents/samples/gemini/tmp/*/chats/session-*-57-*.jsonl", "samples/gemini-cli/agentcmd/**/*.json",
           "samples/matrix-agent-sessions/gemini/*"]


def millis(time):
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def parts(record):
    content = record.get("content") or record.get("parts") or []
    content = content if isinstance(content, list) else [content]
    return [dict(text=part) if isinstance(part, str) else part for part in content if part]


def answers_only(record):
    content = parts(record)
    return bool(content) and all("functionResponse" in part for part in content)


def replayed(text):
    """The messages as the lines leave them, and how often they were summarised."""
    session, title, order, last, compactions = None, None, [], {}, 0
    for line in text.splitlines():
        record = json.loads(line)
        if "$rewindTo" in record:
            at = order.index(record["$rewindTo"]) if record["$rewindTo"] in order else 0
            del order[at:]
        elif "id" in record:
            if record["id"] not in order:
                order.append(record["id"])
            last[record["id"]] = record
        else:
            change = record.get("$set", record)
            session = session or change.get("sessionId")
            title = change.get("summary") or title
            listed = [one for one in change.get("messages") or [] if not answers_only(one)]
            stands = [id for id in order if not answers_only(last[id])]
            if listed and stands and [one["id"] for one in listed] != stands:
                compactions += 1
            for one in listed:
                if one["id"] not in last:
                    order.append(one["id"])
                    last[one["id"]] = one
    return session, title, [last[id] for id in order], compactions


def failed(call):
    if call.get("status") in ("error", "cancelled"):
        return True
    results = call["result"] if isinstance(call["result"], list) else [call["result"]]
    for result in results:
        response = (result.get("functionResponse") or {}).get("response") or {}
        output = str(response.get("output")).replace("\\n", "\n")
        code = re.search(r"\nExit Code: (\S+)", output) if call["name"] == "run_shell_command" else None
        if "error" in response or (code and code.group(1) not in ("0", "(none)")):
            return True
    return False


def read(path):
    text = open(path, encoding="utf-8", errors="replace").read()
    out = dict(messages=0, prompts=0, answers=0, calls=0, results=0, failed=0, compactions=0, input=0,
               output=0, cache_read=0, cache_write=0, cost=0.0, threads=1)
    title, model = None, None
    try:
        value = json.loads(text)
        records = value["messages"] if "messages" in value else value.get("history") or [value]
        session, title = value.get("sessionId"), value.get("summary")
        model = (value.get("meta") or {}).get("model")
    except ValueError:
        session, title, records, out["compactions"] = replayed(text)
    if session:
        out["session"] = session
    answered, prompts, answers, times = set(), [], [], []
    for record in records:
        kind = record.get("type") or record.get("role")
        content = parts(record)
        texts = [part["text"] for part in content if part.get("text") and not part.get("thought")]
        if answers_only(record) and all(part["functionResponse"]["id"] in answered for part in content):
            continue
        out["messages"] += 1
        if record.get("timestamp"):
            times.append(millis(record["timestamp"]))
        if kind == "user" and not texts[0].startswith("<session_context>"):
            out["prompts"] += 1
            prompts.extend(texts)
        if kind in ("gemini", "model"):
            answers.extend(text for text in texts if text.strip())
            model = record.get("model") or model
        calls = record.get("toolCalls") or []
        done = [call for call in calls if call.get("result")]
        out["calls"] += len(calls)
        out["results"] += len(done)
        out["failed"] += sum(failed(call) for call in done)
        answered.update(call["id"] for call in done)
        if done:
            out["messages"] += 1
            times.append(max(millis(call["timestamp"]) for call in calls))
        tokens = record.get("tokens")
        if tokens:
            out["input"] += tokens["input"] - tokens["cached"] + tokens["tool"]
            out["output"] += tokens["output"] + tokens["thoughts"]
            out["cache_read"] += tokens["cached"]
            assert sum(tokens[name] for name in ("input", "output", "thoughts", "tool")) == tokens["total"]
    out["answers"] = len(answers)
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"] = (times[0], times[-1]) if times else (None, None)
    out["model"], out["title"] = model, title
    root = os.path.join(os.path.dirname(path), "..", ".project_root")
    if os.path.exists(root):
        out["cwd"] = open(root).read().strip()
    return [out]
