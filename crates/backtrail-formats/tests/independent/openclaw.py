"""Reads a session file of OpenClaw, by the format's description alone.

An entry whose parent is not an entry of the file follows the one before it.
"""
from tally import Tally, lines

SAMPLES = ["samples/matrix-agent-sessions/openclaw/*.jsonl"]


def read(path):
    header, *entries = lines(path)
    tally = Tally(header["id"])
    tally.out["cwd"] = header["cwd"]
    known = [entry["id"] for entry in entries]
    way, at = [], len(entries) - 1
    while at >= 0:
        way.insert(0, entries[at])
        parent = entries[at]["parentId"]
        at = known.index(parent) if parent in known else at - 1
    said = [entry for entry in entries if entry["type"] in ("message", "custom_message")]
    assert all(entry in way for entry in said), "an entry of another branch"
    for entry in way:
        at = entry["timestamp"]
        if entry["type"] == "model_change":
            tally.out["model"] = entry["modelId"]
        if entry["type"] == "custom_message":
            tally.other(at)
        if entry["type"] != "message":
            continue
        message = entry["message"]
        if message["role"] == "toolResult":
            tally.result(message["isError"], at)
            continue
        texts = [part["text"] for part in message["content"] if part["type"] == "text"]
        if message["role"] == "user":
            tally.prompt(texts, at)
        elif message["role"] == "assistant":
            tally.out["model"] = message.get("model") or tally.out["model"]
            tally.answer(texts, sum(part["type"] == "toolCall" for part in message["content"]), at)
        else:
            tally.other(at)
    return tally.done()
