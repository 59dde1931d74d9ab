"""Counts what a session file of pi says, by the format's description alone.

Usage: pi.py FILE. Prints one JSON object: messages and tool calls on the way to the last
entry, and the tokens of its replies.
"""
import json
import sys

entries = []
for line in open(sys.argv[1], encoding="utf-8", errors="replace"):
    try:
        entries.append(json.loads(line))
    except ValueError:
        pass

header = entries[0]
body = [entry for entry in entries if entry["type"] != "session"]
if header.get("version", 1) < 2:
    path = body
else:
    by_id = {entry["id"]: entry for entry in body}
    path, at = [], body[-1] if body else None
    while at is not None:
        path.append(at)
        at = by_id.get(at["parentId"])
    path.reverse()

out = dict(session=header["id"], messages=0, prompts=0, calls=0, results=0, compactions=0,
           input=0, output=0, cache_read=0, cache_write=0, cost=0.0)
for entry in path:
    if entry["type"] == "compaction":
        out["compactions"] += 1
    if entry["type"] in ("custom_message", "branch_summary"):
        out["messages"] += 1
    if entry["type"] != "message":
        continue
    message = entry["message"]
    out["messages"] += 1
    out["prompts"] += message["role"] == "user"
    out["results"] += message["role"] == "toolResult"
    if message["role"] == "assistant":
        out["calls"] += sum(part["type"] == "toolCall" for part in message["content"])
        usage = message["usage"]
        out["input"] += usage["input"]
        out["output"] += usage["output"]
        out["cache_read"] += usage["cacheRead"]
        out["cache_write"] += usage["cacheWrite"]
        out["cost"] += usage["cost"]["total"]
out["cost"] = round(out["cost"], 6)
print(json.dumps(out))
