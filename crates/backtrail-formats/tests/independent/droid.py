"""Reads a session of Droid, or the output of `droid exec`, by the formats' descriptions alone."""
from tally import Tally, lines

SAMPLES = ["samples/matrix-agent-sessions/droid/*.jsonl"]


def prompt(tally, texts, at):
    """Reminders before a prompt are a message of their own."""
    own, reminded = [], False
    for text in texts:
        if text.startswith("<system-reminder>"):
            reminded, text = True, text.rsplit("</system-reminder>", 1)[1].strip()
        own.append(text)
    if reminded:
        tally.other(at)
    tally.prompt(own, at)


def read(path):
    tally, said = Tally(None), None
    for line in lines(path):
        kind, at, out = line["type"], line.get("timestamp"), tally.out
        if kind == "session_start":
            out["session"], out["cwd"] = line["id"], line["cwd"]
            out["title"] = line.get("sessionTitle") or line["title"]
            continue
        out["session"] = out["session"] or line.get("session_id") or line.get("sessionId")
        if kind == "system":
            out["cwd"], out["model"] = line["cwd"], line["model"]
        elif kind == "message" and "message" in line:
            content = line["message"]["content"]
            texts = [block["text"] for block in content if block["type"] == "text"]
            results = [block for block in content if block["type"] == "tool_result"]
            if line["message"]["role"] == "assistant":
                tally.answer(texts, sum(block["type"] == "tool_use" for block in content), at)
            elif results:
                [result] = results
                tally.result("exit code: 1" in result["content"] or result.get("is_error"), at)
            else:
                prompt(tally, texts, at)
        elif kind == "message" and line["role"] == "user":
            prompt(tally, [line["text"]], at)
        elif kind == "message":
            said = line["text"]
            tally.answer([said], 0, at)
        elif kind == "tool_call":
            tally.answer([], 1, at)
        elif kind == "tool_result":
            value = line["value"]
            failed = isinstance(value, dict) and value.get("exitCode", 0) != 0
            tally.result(line.get("isError") or failed, at)
        elif kind == "completion":
            if line["finalText"] != said:
                tally.answer([line["finalText"]], 0, at)
            used = line.get("usage")
            if used:
                tally.usage(used["input_tokens"], used["output_tokens"], used["cache_read_input_tokens"],
                            used["cache_creation_input_tokens"], at)
        elif kind == "error":
            tally.answer([], 0, at)
        else:
            raise ValueError(kind)
    return tally.done()
