"""Reads a transcript of Antigravity, by the format's description alone.

A prompt is inside <USER_REQUEST>; what is around it is a message of its own. A step of the
model that is not a response is the result of a tool.
"""
import os
import re

from tally import Tally, lines

SAMPLES = ["samples/matrix-agent-sessions/antigravity/*.jsonl"]


def read(path):
    tally = Tally(os.path.basename(path)[:-len(".jsonl")])
    for line in lines(path):
        kind, at, text = line["type"], line["created_at"], line.get("content", "")
        if kind == "USER_INPUT":
            chosen = re.search(r"`Model Selection` from .* to (.*)\.", text)
            if chosen:
                tally.out["model"] = chosen.group(1)
            request = re.search(r"(.*)<USER_REQUEST>(.*)</USER_REQUEST>(.*)", text, re.S)
            if request and (request.group(1) + request.group(3)).strip():
                tally.other(at)
            tally.prompt([request.group(2).strip() if request else text], at)
        elif kind == "PLANNER_RESPONSE":
            tally.answer([text], len(line.get("tool_calls", [])), at)
        elif kind == "CHECKPOINT":
            tally.compaction(at)
        elif line["source"] == "SYSTEM":
            if text:
                tally.other(at)
        else:
            tally.result(False, at)
    return tally.done()
