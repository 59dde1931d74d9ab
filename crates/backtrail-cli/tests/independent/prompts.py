"""Reads what people typed from the raw files of agents, independently of Backtrail.

Prints an object: for each session its prompts and its title.
"""

import json
import pathlib
import re
import sys

# How texts begin that an agent wrote in the user's name.
INJECTED = (
    "<local-command-", "<bash-stdout>", "<bash-stderr>", "<system-reminder>", "Caveat: The messages below",
    "[Request interrupted by user", "<environment_context>", "<user_instructions>", "# AGENTS.md",
    "<turn_aborted>", "<session_context>", "This session is being continued",
)
# Commands that only concern the agent.
OWN = {"/clear", "/model", "/exit", "/login", "/compact", "/resume", "/help", "/config"}


def lines(path):
    for line in path.read_text(errors="replace").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            pass


def typed(text):
    """Returns what was typed, or None if nobody typed it."""
    if text.strip().startswith(INJECTED):
        return None
    if text.startswith("# Context from my IDE setup:"):
        return text.split("## My request for Codex:", 1)[1].strip()
    name = re.search(r"<command-name>(.*?)</command-name>", text, re.S)
    if name and text.strip().startswith("<command-"):
        args = re.search(r"<command-args>(.*?)</command-args>", text, re.S)
        return f"{name.group(1)} {args.group(1) if args else ''}".strip()
    return text


def texts(content, kinds):
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or [] if part.get("type") in kinds]


def claude(path):
    found = []
    for line in lines(path):
        content = (line.get("message") or {}).get("content")
        if line.get("type") != "user" or line.get("isMeta") or line.get("isSidechain") or line.get("isCompactSummary"):
            continue
        if isinstance(content, list) and any(part.get("type") == "tool_result" for part in content):
            continue
        found += ["\n".join(texts(content, {"text"}))]
    return found


def codex(path):
    found = []
    for line in lines(path):
        payload = line.get("payload") or {}
        if line.get("type") == "response_item" and payload.get("type") == "message" and payload.get("role") == "user":
            parts = [typed(text) for text in texts(payload["content"], {"input_text"})]
            parts = [part for part in parts if part is not None]
            found += ["\n".join(parts)] if parts else []
    return found


def pi(path):
    found = []
    for line in lines(path):
        message = line.get("message") or {}
        if line.get("type") == "message" and message.get("role") == "user":
            found += ["\n".join(texts(message["content"], {"text"}))]
    return found


def title(prompts):
    words = [" ".join(prompt.split()) for prompt in prompts]
    real = [word for word in words if word and word.split()[0] not in OWN]
    chosen = (real or words or [""])[0]
    plan = "Implement the following plan: # "
    if chosen.startswith(plan):
        raw = next(prompt for prompt in prompts if " ".join(prompt.split()) == chosen)
        return raw.split("#", 1)[1].splitlines()[0].strip()
    return chosen.lstrip("# ")


def main(shared):
    agents, samples = shared / "agents/samples", shared / "samples"
    read = {
        claude: [*agents.glob("claude/**/*.jsonl"), *samples.glob("claude-code/agentcmd/full/*.jsonl")],
        codex: [*agents.glob("codex/**/rollout-*.jsonl"), *samples.glob("codex/agentcmd/full/*.jsonl")],
        pi: [*agents.glob("pi/*.jsonl"), *samples.glob("pi/generated-*/**/*.jsonl")],
    }
    sessions = {}
    for reader, paths in read.items():
        for path in paths:
            uuid = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
            inside = [line.get("sessionId") for line in lines(path) if line.get("sessionId")]
            name = inside[0] if inside else re.findall(uuid, path.name)[-1]
            prompts = [typed(text) for text in reader(path)]
            prompts = [prompt for prompt in prompts if prompt is not None]
            # The agent's own title comes first.
            here = {line.get("uuid") for line in lines(path)}
            summaries = [
                line["summary"]
                for line in lines(path)
                if line.get("type") == "summary" and line.get("leafUuid") in here
            ]
            sessions[name] = {"prompts": prompts, "title": (summaries or [title(prompts)])[-1]}
    json.dump(sessions, sys.stdout)


main(pathlib.Path(sys.argv[1]))
