"""Reads a session file of Hermes, by the format's description alone."""
import json

from tally import Tally

SAMPLES = ["samples/matrix-agent-sessions/hermes/*.json"]


def read(path):
    session = json.load(open(path, encoding="utf-8"))
    tally = Tally(session["session_id"])
    tally.out["model"] = session["model"]
    cwd = session.get("cwd") or session.get("model_config", {}).get("cwd")
    tally.out["cwd"] = cwd if cwd.startswith("/") else None
    if session.get("system_prompt"):
        tally.other()
    for message in session["messages"]:
        if message["role"] == "user":
            tally.prompt([message["content"]])
        elif message["role"] == "assistant":
            tally.answer([message["content"]], len(message.get("tool_calls", [])))
        elif message["role"] == "tool":
            tally.result(message.get("finish_reason") == "error")
        else:
            assert message["role"] == "session_meta", message
    return tally.done()
