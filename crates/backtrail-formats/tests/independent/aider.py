"""Reads a chat history of aider, by the format's description alone.

A chat in which the user wrote something is a session. Every 20th is recorded."""
import datetime
import re

SAMPLES = ["samples/aider/*.md"]
START = "# aider chat started at "


def number(text):
    factor = {"k": 1000, "M": 1000000}.get(text[-1], 1)
    return round(float(text.rstrip("kM").replace(",", "")) * factor)


def blocks(lines):
    """Yields (kind, text, whether the chat has a prompt, when it started)."""
    started, asked, kind, text = None, False, None, []
    for line in lines + [START]:
        line = line.rstrip()
        if line.startswith(START) or line + " " == START:
            new, own = "start", line
        elif line == "####" or line.startswith("#### "):
            new, own = "prompt", line[5:]
        elif line == ">" or line.startswith("> "):
            own = line[2:]
            new = "tokens" if own.startswith("Tokens: ") else "output"
        elif not line:
            new, own = ("answer" if kind == "answer" else None), line
        elif kind == "tokens" and line.startswith("Cost: "):
            text.append(line)
            continue
        else:
            new, own = "answer", line
        if new != kind or new in ("tokens", "start"):
            whole = "\n".join(text).strip("\n").rstrip()
            if kind and kind != "start" and whole:
                yield kind, whole, asked, started
                asked = asked or kind == "prompt"
            kind, text = new, []
        if new == "start":
            started, asked = line[len(START):], False
        elif new:
            text.append(own)


def chats(lines):
    """Yields the name of each chat, and its lines."""
    starts = [n for n, line in enumerate(lines) if line.startswith(START)]
    seen = {}
    for at, start in enumerate(starts):
        name = "aider-" + re.sub(r"\D", "", lines[start][len(START):])
        seen[name] = seen.get(name, 0) + 1
        end = starts[at + 1] if at + 1 < len(starts) else len(lines)
        chat = lines[start if at else 0:end]
        if any(line.rstrip() == "####" or line.startswith("#### ") for line in lines[start:end]):
            yield name if seen[name] == 1 else f"{name}-{seen[name]}", chat


def read(path):
    lines = open(path, encoding="utf-8").read().split("\n")
    return [session(name, chat) for name, chat in chats(lines)][::20]


def session(name, lines):
    out = dict(session=name, messages=0, prompts=0, answers=0, calls=0, results=0, failed=0, compactions=0, input=0,
               output=0, cache_read=0, cache_write=0, threads=1, title=None, cwd=None)
    prompts, answers, times, model = [], [], [], None
    for kind, text, asked, started in blocks(lines):
        if started:
            at = datetime.datetime.fromisoformat(started + "+00:00").timestamp() * 1000
        if kind == "tokens":
            parts = dict((what, number(count)) for count, what in
                         re.findall(r"([\d.,]+[kM]?) (sent|received|cache hit|cached|cache write)", text))
            sent, hit = parts.get("sent", 0), parts.get("cache hit", 0) + parts.get("cached", 0)
            write = parts.get("cache write", 0)
            if sent + parts.get("received", 0) + hit + write == 0:
                continue
            sent -= write if write <= sent else 0
            sent -= hit if hit <= sent else 0
            out["input"] += sent
            out["output"] += parts.get("received", 0)
            out["cache_read"] += hit
            out["cache_write"] += write
        else:
            out["messages"] += 1
        if started:
            times.append(round(at))
        # What aider wrote itself: pages for /help, what a linter found, and that nothing was typed.
        own = text.startswith("# Fix any errors below, if possible.") or text == "<blank>"
        own = own or text.startswith("# Question:") and "# Relevant docs:" in text
        if kind == "prompt" and not own:
            prompts.append(text)
        if kind == "answer" and asked:
            answers.append(text)
        if kind == "output":
            for line in text.split("\n"):
                named = re.match(r"(?:Main model|Models|Model): (\S+?)[^\x00-\x7f]* with ", line)
                model = named.group(1) if named else model
    out["prompts"], out["answers"], out["model"] = len(prompts), len(answers), model
    out["prompt_text"], out["answer_text"] = "\0".join(prompts), "\0".join(answers)
    out["first_at"], out["last_at"] = times[0], times[-1]
    return out
