"""Reads a journal of Kimi Code, by the format's description alone.

Each part of a response is a message. Usage is what `usage.record` says: every call has one.
"""
import os

from tally import Tally, lines

SAMPLES = ["samples/matrix-agent-sessions/kimi/*.jsonl"]


def read(path):
    tally, system = Tally(os.path.basename(path)[:-len(".jsonl")]), None
    for line in lines(path):
        kind, at, out = line["type"], line.get("time"), tally.out
        if kind == "llm.request":
            out["model"] = line["model"]
        if kind in ("config.update", "profile.bind"):
            out["cwd"] = line.get("cwd") or line.get("environmentDisclosure", {}).get("cwd") or out["cwd"]
            prompt = line.get("systemPrompt")
            if prompt and prompt != system:
                system = prompt
                tally.other(at)
        if kind == "context.append_message":
            message = line["message"]
            texts = [part["text"] for part in message["content"] if part["type"] == "text"]
            if message["origin"]["kind"] == "user":
                tally.prompt(texts, at)
            else:
                tally.other(at)
        if kind == "context.apply_compaction":
            tally.compaction(at)
        if kind == "usage.record":
            used = line["usage"]
            tally.usage(used["inputOther"], used["output"], used["inputCacheRead"], used["inputCacheCreation"], at)
        if kind == "context.append_loop_event":
            event = line["event"]
            if event["type"] == "content.part":
                tally.answer([event["part"].get("text", "")], 0, at)
            if event["type"] == "tool.call":
                tally.answer([], 1, at)
            if event["type"] == "tool.result":
                tally.result(event["result"].get("isError"), at)
    return tally.done()
