"""What independent readers count: one session, message by message."""
import datetime
import json


def millis(time):
    if isinstance(time, (int, float)) and not isinstance(time, bool):
        return int(time)
    if not isinstance(time, str):
        return None
    try:
        time = datetime.datetime.fromisoformat(time.replace("Z", "+00:00"))
    except ValueError:
        return None
    return None if time.tzinfo is None else round(time.timestamp() * 1000)


def lines(path):
    for line in open(path, encoding="utf-8", errors="replace"):
        if line.strip():
            yield json.loads(line)


class Tally:
    def __init__(self, session):
        self.out = dict(session=session, messages=0, prompts=0, answers=0, calls=0, results=0, failed=0,
                        compactions=0, input=0, output=0, cache_read=0, cache_write=0, cost=0.0,
                        model=None, cwd=None, title=None, threads=1)
        self.prompts, self.answers, self.times = [], [], []

    def time(self, at):
        if millis(at) is not None:
            self.times.append(millis(at))

    def other(self, at=None):
        """A message that is neither a prompt, an answer nor a result."""
        self.out["messages"] += 1
        self.time(at)

    def prompt(self, texts, at=None):
        self.other(at)
        self.out["prompts"] += 1
        self.prompts.extend(texts)

    def answer(self, texts, calls=0, at=None):
        self.other(at)
        self.answers.extend(text for text in texts if text.strip())
        self.out["calls"] += calls

    def result(self, failed=False, at=None):
        self.other(at)
        self.out["results"] += 1
        self.out["failed"] += bool(failed)

    def compaction(self, at=None):
        self.out["compactions"] += 1
        self.time(at)

    def usage(self, input, output, cache_read, cache_write, at=None):
        self.time(at)
        for name, value in zip(("input", "output", "cache_read", "cache_write"),
                               (input, output, cache_read, cache_write)):
            self.out[name] += value

    def done(self):
        self.out["answers"] = len(self.answers)
        self.out["prompt_text"] = "\0".join(self.prompts)
        self.out["answer_text"] = "\0".join(self.answers)
        self.out["first_at"] = self.times[0] if self.times else None
        self.out["last_at"] = self.times[-1] if self.times else None
        return [self.out]
