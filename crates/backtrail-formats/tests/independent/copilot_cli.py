"""Reads a session file of Copilot CLI, by the format's description alone."""
import datetime
import json
import os
import re

SAMPLES = ["agents/samples/copilot/session-state/*/events.jsonl", "samples/matrix-agent-sessions/copilot/*.jsonl",
           "samples/matrix-agent-sessions/copilot/*/*/events.jsonl"]


def millis(time):
    if not time[:1].isdigit():
        return None
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def failed(data):
    code = (data.get("shellExecution") or {}).get("exitCode")
    if code is None:
        noted = re.search(r"exit code (\d+)>\s*$", (data.get("result") or {}).get("content") or "")
        code = int(noted.group(1)) if noted else 0
    return code != 0 or not data["success"]


def read(path):
    events = [json.loads(line) for line in open(path, encoding="utf-8", errors="replace")]
    begin = events[0]["data"]
    out = dict(session=begin["sessionId"], messages=0, prompts=0, answers=0, calls=0, results=0, failed=0,
               compactions=0, input=0, output=0, cache_read=0, cache_write=0, cost=0.0)
    prompts, answers, times, agents = [], [], [], set()
    model, cwd, title = begin.get("selectedModel"), (begin.get("context") or {}).get("cwd"), None
    workspace = os.path.join(os.path.dirname(path), "workspace.yaml")
    if os.path.exists(workspace):
        title = re.search(r"^name: (.*)$", open(workspace).read(), re.M).group(1)
    noted, sums = False, {}
    for event in events:
        kind, data = event["type"], event["data"]
        if kind in ("session.resume", "session.start"):
            model = data.get("selectedModel") or model
            cwd = (data.get("context") or {}).get("cwd") or cwd
        if kind == "session.model_change":
            model = data["newModel"]
        if kind == "subagent.started":
            agents.add(data["toolCallId"])
        if kind == "session.usage_record":
            usage, noted = data["usage"], True
            out["input"] += usage["inputTokens"] - usage["cacheReadTokens"] - usage["cacheWriteTokens"]
            out["output"] += usage["outputTokens"]
            out["cache_read"] += usage["cacheReadTokens"]
            out["cache_write"] += usage["cacheWriteTokens"]
            times.append(millis(event["timestamp"]))
        if kind == "session.shutdown" and not noted:
            for name, metrics in data["modelMetrics"].items():
                usage = metrics.get("usage")
                if not usage:
                    continue
                known = sums.pop(name, 0)
                out["input"] += usage["inputTokens"] - usage["cacheReadTokens"] - usage["cacheWriteTokens"]
                out["output"] += max(usage["outputTokens"] - known, 0)
                out["cache_read"] += usage["cacheReadTokens"]
                out["cache_write"] += usage["cacheWriteTokens"]
                times.append(millis(event["timestamp"]))
        if data.get("parentToolCallId"):
            agents.add(data["parentToolCallId"])
            continue
        is_message = kind in ("user.message", "system.message", "system.notification", "assistant.message",
                              "assistant.reasoning", "tool.execution_complete")
        if is_message:
            out["messages"] += 1
            times.append(millis(event["timestamp"]))
        if kind == "user.message":
            out["prompts"] += 1
            prompts.append(data["content"])
        if kind == "tool.execution_complete":
            out["results"] += 1
            out["failed"] += failed(data)
        if kind == "assistant.message":
            out["calls"] += len(data["toolRequests"])
            if data["content"].strip():
                answers.append(data["content"])
            model = data.get("model") or model
            out["output"] += data.get("outputTokens") or 0
            sums[model] = sums.get(model, 0) + (data.get("outputTokens") or 0)
    out["answers"] = len(answers)
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    times = [time for time in times if time is not None]
    out["first_at"], out["last_at"] = times[0], times[-1]
    out["model"], out["cwd"], out["title"], out["threads"] = model, cwd, title, 1 + len(agents)
    return [out]
