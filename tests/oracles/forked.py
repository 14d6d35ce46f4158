"""Jobs in forks of a process that has imported what they need: each begins anew, and none waits for imports."""

import json
import subprocess
import sys
from contextlib import contextmanager

LOOP = """
import json, os, sys
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os.write(1, ("\\nANSWER " + json.dumps(fit(json.loads(line))) + "\\n").encode())
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        os.write(1, b"\\nANSWER null\\n")
"""


@contextmanager
def forked(setup, **pipes):
    """Ask for what ``fit(job)`` returns, a function that the code ``setup`` defines; None where its process dies.

    Jobs and answers are JSON. ``pipes`` are further arguments of `subprocess.Popen`.
    """
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True} | pipes
    with subprocess.Popen([sys.executable, "-c", setup + LOOP], **how) as process:

        def ask(job):
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            answer = next(line for line in process.stdout if line.startswith("ANSWER "))
            return json.loads(answer.removeprefix("ANSWER "))

        yield ask
