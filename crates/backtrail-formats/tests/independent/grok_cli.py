"""Reads a chat history of Grok CLI with its summary, by the formats' descriptions alone."""
import json
import os

from tally import Tally, lines

SAMPLES = ["samples/matrix-agent-sessions/grok/**/chat_history.jsonl"]


def read(path):
    summary = json.load(open(os.path.join(os.path.dirname(path), "summary.json")))
    tally = Tally(summary["info"]["id"])
    tally.out["cwd"], tally.out["title"] = summary["info"]["cwd"], summary["generated_title"]
    tally.out["model"] = summary["current_model_id"]
    for line in lines(path):
        kind = line["type"]
        if kind == "user" and "synthetic_reason" not in line:
            tally.prompt([part["text"] for part in line["content"] if part["type"] == "text"])
        elif kind == "assistant":
            tally.answer([line["content"]], len(line["tool_calls"]))
        elif kind == "reasoning":
            tally.answer([])
        elif kind == "backend_tool_call":
            tally.answer([], 1)
        elif kind == "tool_result":
            tally.result()
        else:
            assert kind in ("system", "user"), kind
            tally.other()
    return tally.done()
