"""Counts what a checkpoint file of design B says, by its description alone.

Usage: checkpoint_files.py FILE. Prints one JSON object. A call is a message, what it gave
back is another, and the changes of files are one more.
"""
import json
import sys

value = json.load(open(sys.argv[1], encoding="utf-8"))
calls = value["tool_calls"]
results = [call for call in calls if call["success"] is not None]
prompts, answers = value["user_prompts"], value["assistant_responses"]
print(json.dumps(dict(
    messages=len(prompts) + len(answers) + len(calls) + len(results) + bool(value["file_diffs"]),
    prompts=len(prompts), calls=len(calls), results=len(results), input=0, output=0)))
