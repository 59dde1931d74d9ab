"""Reads a trajectory of ATIF, by the format's schema alone."""
import datetime
import json

SAMPLES = ["samples/atif/*_atif.json"]


def millis(time):
    return round(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)


def text_of(message):
    if isinstance(message, str):
        return [message] if message else []
    return [part["text"] for part in message if part["type"] == "text"]


def read(path):
    run = json.load(open(path, encoding="utf-8"))
    out = dict(session=run.get("trajectory_id") or run.get("session_id"), messages=0, prompts=0, answers=0,
               calls=0, results=0, failed=0, compactions=0, input=0, output=0, cache_read=0, cache_write=0,
               cost=0.0, threads=1 + len(run.get("subagent_trajectories") or []), title=None, cwd=None)
    model, prompts, answers, times = run["agent"].get("model_name"), [], [], []
    for step in run["steps"]:
        observed = (step.get("observation") or {}).get("results", [])
        times.append(millis(step["timestamp"]))
        out["messages"] += 1 + len(observed)
        if step["source"] == "user":
            out["prompts"] += 1
            prompts += text_of(step["message"])
        out["results"] += sum(bool(result.get("source_call_id")) for result in observed)
        if step["source"] != "agent":
            continue
        answers += [text for text in text_of(step["message"]) if text.strip()]
        out["calls"] += len(step.get("tool_calls") or [])
        model = step.get("model_name") or model
        metrics = step.get("metrics") or {}
        if not step.get("is_copied_context"):
            cached = metrics.get("cached_tokens") or 0
            out["input"] += (metrics.get("prompt_tokens") or 0) - cached
            out["output"] += metrics.get("completion_tokens") or 0
            out["cache_read"] += cached
            out["cost"] += metrics.get("cost_usd") or 0
    out["answers"], out["model"] = len(answers), model
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"] = times[0], times[-1]
    return [out]
