"""Counts what a session file of claw-code says, by the format's description alone.

Usage: claw_code.py FILE. Prints one JSON object.
"""
import json
import sys

text = open(sys.argv[1], encoding="utf-8", errors="replace").read()
try:
    messages = json.loads(text)["messages"]
except (ValueError, KeyError):
    records = [json.loads(line) for line in text.splitlines() if line.strip()]
    messages = [record["message"] for record in records if record["type"] == "message"]

out = dict(messages=len(messages), prompts=0, calls=0, results=0, input=0, output=0,
           cache_read=0, cache_write=0)
for message in messages:
    kinds = [block["type"] for block in message["blocks"]]
    out["prompts"] += message["role"] == "user"
    out["calls"] += kinds.count("tool_use")
    out["results"] += kinds.count("tool_result")
    usage = message.get("usage") or {}
    out["input"] += usage.get("input_tokens", 0)
    out["output"] += usage.get("output_tokens", 0)
    out["cache_read"] += usage.get("cache_read_input_tokens", 0)
    out["cache_write"] += usage.get("cache_creation_input_tokens", 0)
print(json.dumps(out))
