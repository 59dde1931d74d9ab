#!/usr/bin/env python3
"""A small agent that records everything it says and does, and survives being killed.

    record.py                     start a session and finish the work
    record.py --die-in-tool       the same, but die in the middle of a tool call
    record.py --session ID        continue where that session stopped

It prints the session's id on its first line and `done: N messages` on its last.
It runs `backtrail` from PATH; set BACKTRAIL to use another program.

How it works, from the bottom of the file up:

1. `main` is the loop of every agent: while it is the model's turn, ask the model,
   record its message, run the tools that it calls, record the results. Everything
   is recorded *before* it is acted on, so whatever happens, the log knows at least
   as much as the world does.

2. `Recorder` talks to one `backtrail record` process that lives as long as the
   agent: one JSON object per line in, one answer per line out. An answer means that
   the record is on disk. Each line has `expect`, the number of the last record that
   we know of: if anything else was recorded in the meantime, the line is refused
   instead of being mixed in, and if we repeat a line because its answer got lost,
   it is not recorded twice.

3. To resume, the agent asks `backtrail context` what to send to the model. If the
   agent died during a tool call, the context has a result for it that says so. The
   log does not change; the model sees it and decides what to do.

4. `model` and `run_tool` are stand-ins for a provider and real tools. Put yours here.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

BACKTRAIL = os.environ.get("BACKTRAIL", "backtrail")
PROMPT = "How many words are there in: to be or not to be?"


def model(messages):
    """Returns the blocks of the model's next message, and what the call used.

    This one follows a script: it calls a tool, calls it again if that was
    interrupted, and then reports the result.
    """
    last = messages[-1]["content"][-1]
    calls = sum(block["type"] == "tool_use" for m in messages for block in m["content"])
    usage = {"input_tokens": 20 * len(messages), "output_tokens": 10}
    if last["type"] == "tool_result" and not last.get("is_error"):
        return [text(f"There are {text_of(last['content'])} words.")], usage
    words = "Let me count." if calls == 0 else "I was interrupted, so I count again."
    call = {
        "type": "tool_use",
        "id": f"call_{calls + 1}",
        "name": "count_words",
        "input": {"text": "to be or not to be"},
    }
    return [text(words), call], usage


def run_tool(name, arguments):
    """Runs a tool; returns its output and whether it failed."""
    if name != "count_words":
        return f"no such tool: {name}", True
    return str(len(arguments["text"].split())), False


def text(words):
    return {"type": "text", "text": words}


def text_of(content):
    """Returns the text of a tool's result, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


class Recorder:
    """One `backtrail record` process, and what it has acknowledged."""

    def __init__(self, session=None, last_seq=0):
        self.session = session
        self.last_seq = last_seq
        self.start()

    def start(self):
        arguments = ["--session", self.session] if self.session else ["--title", "counting words"]
        self.process = subprocess.Popen(
            [BACKTRAIL, "record", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def say(self, role, blocks, usage=None, **details):
        """Records a message, and returns once it is on disk."""
        message = {"role": role, "blocks": blocks}
        if usage:
            message["usage"] = usage
        record = {"type": "message", "expect": self.last_seq, **details, "message": message}
        answer = self.send(json.dumps(record))
        if not answer["ok"]:
            # Either the log is unchanged, or another process appended to it. In both
            # cases, stop here and read the log again.
            sys.exit(f"not recorded: {answer['error']}")
        if self.session is None:
            print(answer["session"], flush=True)
        self.session, self.last_seq = answer["session"], answer["seq"]

    def send(self, line):
        """Sends a line and returns the answer.

        When an agent is killed, its recorder needs a moment to notice, and until
        then no other process can write. So if ours ends without an answer, try
        again; `expect` makes sure that nothing is recorded twice.
        """
        for _ in range(25):
            try:
                self.process.stdin.write(line + "\n")
                self.process.stdin.flush()
                answer = self.process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            if answer:
                return json.loads(answer)
            self.process.wait()
            if self.session is None:
                break
            time.sleep(0.2)
            self.start()
        sys.exit("the recorder ended without an answer")

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit("the recorder reports that something was not recorded")


def ask(*arguments):
    """Runs `backtrail` and returns the JSON that it prints."""
    command = [BACKTRAIL, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"backtrail {arguments[0]} failed")
    return json.loads(done.stdout)


def begin():
    """Starts a session; returns its recorder and the messages for the model."""
    recorder = Recorder()
    recorder.say("user", [text(PROMPT)])
    return recorder, [{"role": "user", "content": [text(PROMPT)]}]


def resume(session):
    """Continues a session; returns its recorder and the messages for the model."""
    known = [s for s in ask("list", "--json") if s["id"].startswith(session)]
    if len(known) != 1 or "error" in known[0]:
        sys.exit(f"no such session: {session}")
    session = known[0]["id"]
    print(session, flush=True)
    # First the number, then the context: if something is recorded in between, our
    # first line is refused.
    last_seq = known[0]["last_seq"]
    context = ask("context", session, "--format", "anthropic")
    return Recorder(session, last_seq), context["messages"]


def main():
    parser = argparse.ArgumentParser(description="A small agent that records what it does.")
    parser.add_argument("--session", metavar="ID", help="continue this session")
    parser.add_argument("--die-in-tool", action="store_true", help="die during a tool call")
    arguments = parser.parse_args()

    recorder, messages = resume(arguments.session) if arguments.session else begin()
    while messages and messages[-1]["role"] == "user":
        started = time.monotonic()
        blocks, usage = model(messages)
        duration_ms = int((time.monotonic() - started) * 1000)
        recorder.say("assistant", blocks, usage, model="scripted", duration_ms=duration_ms)
        messages.append({"role": "assistant", "content": blocks})

        results = []
        for call in [block for block in blocks if block["type"] == "tool_use"]:
            if arguments.die_in_tool:
                os.kill(os.getpid(), signal.SIGKILL)
            output, is_error = run_tool(call["name"], call["input"])
            result = {"type": "tool_result", "tool_use_id": call["id"], "is_error": is_error}
            recorder.say("tool", [{**result, "tool_name": call["name"], "output": output}])
            results.append({**result, "content": output})
        if results:
            messages.append({"role": "user", "content": results})

    recorder.close()
    print(f"done: {len(ask('show', recorder.session, '--json')['messages'])} messages")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"cannot run {BACKTRAIL}: {error}")
