"""Reads a transcript of Cursor's agent, by the format's description alone.

A line is a message. A prompt is inside <user_query>, and the tags are not part of it.
"""
import os
import re

from tally import Tally, lines

SAMPLES = ["samples/matrix-agent-sessions/cursor/**/*.jsonl", "samples/matrix-agent-sessions/_tests/Cursor/*.jsonl"]


def read(path):
    session, folder = os.path.basename(path)[:-len(".jsonl")], os.path.dirname(path)
    if os.path.basename(folder) == "subagents":
        session = os.path.basename(os.path.dirname(folder)) + "/agent/" + session
    tally = Tally(session)
    for line in lines(path):
        if "role" not in line:
            continue
        tally.out["model"] = line.get("model") or tally.out["model"]
        content = line["message"]["content"]
        kinds = [block["type"].replace("-", "_") for block in content]
        texts = [block["text"] for block in content if block["type"] == "text"]
        if line["role"] == "assistant":
            tally.answer(texts, sum(kind in ("tool_use", "tool_call") for kind in kinds))
        elif all(kind == "tool_result" for kind in kinds):
            tally.result(any(block.get("is_error") for block in content))
        else:
            inner = [re.fullmatch(r"\s*<user_query>(.*)</user_query>\s*", text, re.S) for text in texts]
            tally.prompt([found.group(1).strip() if found else text for found, text in zip(inner, texts)])
    return tally.done()
