#!/usr/bin/env python3
"""Writes what independent readers find in the samples to ../expected, one table per agent.

Usage: record.py SHARED [--check]

SHARED is the directory with samples/ and agents/. Each reader is a module beside this one with
`SAMPLES`, the patterns of its samples below SHARED, and `read(path)`, which returns a list of
sessions, each a dictionary; `session` is its id. Numbers are recorded as they are. Strings are
recorded as the first 16 digits of their SHA-256, so the tables contain no text of the samples.
With --check nothing is written: it fails if a table is not what the readers find.
"""
import glob
import hashlib
import importlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(HERE, "..", "expected")


def digest(value):
    if isinstance(value, str):
        return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    if isinstance(value, float):
        return round(value, 6)
    return value


def table(module, shared):
    rows = {}
    for pattern in module.SAMPLES:
        for path in sorted(glob.glob(os.path.join(shared, pattern), recursive=True)):
            if not os.path.isfile(path):
                continue
            name = os.path.relpath(path, shared)
            sessions = module.read(path)
            for session in sessions:
                key = name if len(sessions) == 1 else f"{name}#{session['session']}"
                rows[key] = {field: digest(session[field]) for field in sorted(session)}
    return rows


def main():
    shared, check = sys.argv[1], "--check" in sys.argv[2:]
    sys.path.insert(0, HERE)
    wrong = []
    for script in sorted(os.listdir(HERE)):
        module = importlib.import_module(script[:-3]) if is_reader(script) else None
        if module is None:
            continue
        rows = table(module, shared)
        lines = [f"  {json.dumps(key)}: {json.dumps(rows[key])}" for key in sorted(rows)]
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        path = os.path.join(EXPECTED, script[:-3] + ".json")
        if not check:
            open(path, "w", encoding="utf-8").write(text)
        elif not os.path.exists(path) or open(path, encoding="utf-8").read() != text:
            wrong.append(script)
    if wrong:
        sys.exit("the tables of these readers are not what they find: " + ", ".join(wrong))


def is_reader(script):
    if not script.endswith(".py") or script == "record.py":
        return False
    return "\nSAMPLES = " in open(os.path.join(HERE, script), encoding="utf-8").read()


main()
