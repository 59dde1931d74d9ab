"""Counts what a session file of Gemini CLI says, by the format's description alone.

Usage: gemini_cli.py FILE. Prints one JSON object. Messages are those of the conversation;
a reply whose tools gave something back counts as two: the reply, and what came back.
"""
import json
import sys

text = open(sys.argv[1], encoding="utf-8", errors="replace").read()
try:
    value = json.loads(text)
    records = value["messages"] if "messages" in value else value.get("history") or [value]
    session = value.get("sessionId")
except ValueError:
    session, order, last = None, [], {}
    for line in text.splitlines():
        record = json.loads(line)
        if "$rewindTo" in record:
            at = order.index(record["$rewindTo"]) if record["$rewindTo"] in order else 0
            del order[at:]
        elif "id" in record:
            if record["id"] not in order:
                order.append(record["id"])
            last[record["id"]] = record
        else:
            session = session or record.get("sessionId")
    records = [last[id] for id in order]

out = dict(messages=0, prompts=0, calls=0, results=0, input=0, output=0, cache_read=0,
           cache_write=0)
if session:
    out["session"] = session
for record in records:
    kind = record.get("type") or record.get("role")
    out["messages"] += 1
    out["prompts"] += kind == "user"
    calls = record.get("toolCalls") or []
    answered = [call for call in calls if call.get("result")]
    out["calls"] += len(calls)
    out["results"] += len(answered)
    out["messages"] += bool(answered)
    tokens = record.get("tokens")
    if tokens:
        out["input"] += tokens["input"] - tokens["cached"] + tokens["tool"]
        out["output"] += tokens["output"] + tokens["thoughts"]
        out["cache_read"] += tokens["cached"]
        assert sum(tokens[name] for name in ("input", "output", "thoughts", "tool")) == tokens["total"]
print(json.dumps(out))
