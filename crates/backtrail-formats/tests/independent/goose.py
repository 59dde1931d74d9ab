"""Reads sessions of goose, by the format's description alone: the database and exports."""
import json
import sqlite3

SAMPLES = [
    "agents/samples/goose/sessions.db",
    "agents/samples/goose/export/*.json",
    "samples/goose/*/sessions.db",
]


def from_database(path):
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    database.row_factory = sqlite3.Row
    for row in database.execute("SELECT * FROM sessions"):
        session = dict(row)
        session["model"] = json.loads(session["model_config_json"])["model_name"]
        query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
        messages = [
            dict(role=message["role"], created=message["created_timestamp"],
                 content=json.loads(message["content_json"]))
            for message in database.execute(query, (row["id"],))
        ]
        yield session, messages


def from_export(path):
    with open(path, encoding="utf-8") as file:
        session = json.load(file)
    session["model"] = (session.get("model_config") or {}).get("model_name")
    yield session, session["conversation"]


def read(path):
    sessions = from_database(path) if path.endswith(".db") else from_export(path)
    return [count(session, messages) for session, messages in sessions]


def count(session, messages):
    out = dict(session=session["id"], messages=len(messages), prompts=0, calls=0, results=0, failed=0,
               compactions=0, input=session["accumulated_input_tokens"],
               output=session["accumulated_output_tokens"], cache_read=0, cache_write=0,
               cost=session.get("accumulated_cost") or 0.0, cwd=session["working_dir"],
               title=session["name"], model=session["model"], threads=1)
    prompts, answers = [], []
    for message in messages:
        texts = [part["text"] for part in message["content"] if part["type"] == "text"]
        for part in message["content"]:
            out["calls"] += part["type"] == "toolRequest"
            if part["type"] == "toolResponse":
                out["results"] += 1
                value = part["toolResult"]["value"]
                out["failed"] += bool(value["isError"])
        if message["role"] == "user" and texts:
            out["prompts"] += 1
            prompts += texts
        if message["role"] == "assistant":
            answers += [text for text in texts if text.strip()]
    out["answers"] = len(answers)
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"] = messages[0]["created"] * 1000, messages[-1]["created"] * 1000
    return out
