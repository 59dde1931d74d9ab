"""Reads sessions of opencode, by the format's description alone: the database, exports, and the
files of older versions (by the file of the session)."""
import glob
import json
import os
import sqlite3

SAMPLES = [
    "agents/samples/opencode/opencode.db",
    "agents/samples/opencode/export/*.json",
    "samples/opencode/*/opencode.db",
    "samples/opencode/*/export.json",
    "samples/matrix-agent-sessions/opencode/*/session/*/*.json",
]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def from_database(path):
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    database.row_factory = sqlite3.Row
    for row in database.execute("SELECT * FROM session"):
        info = dict(id=row["id"], title=row["title"], directory=row["directory"])
        messages = []
        query = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        for message in database.execute(query, (row["id"],)):
            query = "SELECT data FROM part WHERE message_id = ? ORDER BY id"
            parts = [json.loads(part[0]) for part in database.execute(query, (message["id"],))]
            messages.append((json.loads(message["data"]), parts))
        yield info, messages


def from_export(path):
    value = load(path)
    yield value["info"], [(message["info"], message["parts"]) for message in value["messages"]]


def from_files(path):
    info = load(path)
    storage = os.path.join(os.path.dirname(path), "..", "..")
    loose = [load(file) for file in sorted(glob.glob(os.path.join(storage, "part", "*.json")))]
    messages = []
    for file in sorted(glob.glob(os.path.join(storage, "message", info["id"], "*.json"))):
        message = load(file)
        folder = os.path.join(storage, "part", message["id"], "*.json")
        parts = [load(part) for part in sorted(glob.glob(folder))]
        parts += [part for part in loose if part["messageID"] == message["id"]]
        messages.append((message, parts))
    messages.sort(key=lambda message: message[0]["time"]["created"])
    yield info, messages


def read(path):
    if path.endswith(".db"):
        sessions = from_database(path)
    elif os.path.basename(path).startswith("export"):
        sessions = from_export(path)
    else:
        sessions = from_files(path)
    return [count(info, messages) for info, messages in sessions]


def count(info, messages):
    out = dict(session=info["id"], messages=0, prompts=0, calls=0, results=0, failed=0,
               compactions=0, input=0, output=0, cache_read=0, cache_write=0, cost=0.0,
               cwd=info["directory"], title=info["title"], threads=1)
    prompts, answers, times, model = [], [], [], None
    for message, parts in messages:
        created = message["time"]["created"]
        if message["role"] == "user":
            own = [part["text"] for part in parts if part["type"] == "text" and not part.get("synthetic")]
            added = [part for part in parts if part["type"] == "text" and part.get("synthetic")]
            out["prompts"] += bool(own)
            out["messages"] += bool(own) + len(added)
            prompts += own
            times += [created] * (bool(own) + len(added))
            continue
        model = message.get("modelID") or message["model"]["modelID"]
        waiting = []
        for part in parts:
            kind = part["type"]
            if kind in ("step-start", "step-finish"):
                times += waiting
                waiting = []
            if kind in ("text", "reasoning") and part["text"].strip():
                out["messages"] += 1
                times.append(part["time"]["start"])
                answers += [part["text"]] if kind == "text" else []
            if kind == "file":
                out["messages"] += 1
                times.append(created)
            if kind == "tool":
                state = part["state"]
                out["messages"] += 2
                out["calls"] += 1
                out["results"] += 1
                out["failed"] += state["status"] == "error" or bool(state.get("metadata", {}).get("exit"))
                times.append(state["time"]["start"])
                waiting.append(state["time"]["end"])
        times += waiting
        end = message["time"].get("completed", created)
        if message.get("error"):
            out["messages"] += 1
            times.append(end)
        tokens = message.get("tokens")
        if tokens:
            cache = tokens.get("cache", {})
            out["input"] += tokens["input"]
            out["output"] += tokens["output"] + tokens.get("reasoning", 0)
            out["cache_read"] += cache.get("read", 0)
            out["cache_write"] += cache.get("write", 0)
            out["cost"] += message["cost"] if isinstance(message["cost"], (int, float)) else 0
            times.append(end)
    out["answers"] = len(answers)
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"] = times[0], times[-1]
    out["model"] = model
    return out
