"""A language server for tests of the demo, run as a script: it does the demo's task itself, with the fault of argv[1].

Started with the demo's environment; it never talks to the model server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from lsp_server.demo.project import CHANGES, TEST_COMMAND

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
FOLDER = Path.cwd()
WORKTREE = Path(os.environ["AGENT_LS_STATE_DIR"]) / "worktree"
METHODS = ["agent/spawn", "agent/review", "agent/apply"]
USAGE = {
    "inputTokens": 100,
    "outputTokens": 20,
    "cacheReadTokens": 300,
    "cacheCreationTokens": 0,
    "toolUses": 7,
    "turns": 4,
    "durationMs": 5,
}
AGENT = {"id": "a1", "agentType": "general-purpose", "model": "claude-sonnet-5", "status": "running"}


def send(**body):
    data = json.dumps({"jsonrpc": "2.0", **body}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
    sys.stdout.buffer.flush()


def event(**fields):
    send(method="agent/progress", params={"agentId": "a1", "rootId": "a1", "seq": 1, "at": "", "event": fields})


def run_test():
    subprocess.run([sys.executable, "-m", "unittest"], cwd=WORKTREE, capture_output=True, check=False)


def spawn(number):
    subprocess.run(["git", "worktree", "add", "-q", "-b", "agent", WORKTREE], check=True, capture_output=True)
    event(kind="started", agent=AGENT)  # before the answer: a client must not lose it
    send(id=number, result={"agent": AGENT})
    event(kind="text", messageId="m", delta="I am ")
    event(kind="message", role="assistant", messageId="m", content=[{"type": "text", "text": "I am \u202ehere"}])
    write(WORKTREE, CHANGES if FAULT != "other-content" else {**CHANGES, "shop/cart.py": ("modified", "nothing")})
    if FAULT == "writes-early":
        (FOLDER / "shop/cart.py").write_text("early")
    if FAULT == "runs-early":
        run_test()
    if FAULT == "dies":
        sys.exit("Fatal: out of luck")
    if FAULT == "never-asks":
        return end()
    command = "rm -rf /" if FAULT == "other-command" else TEST_COMMAND
    options = [("o1", "allowOnce", "Allow once"), ("o2", "rejectOnce", "Reject")]
    send(
        id="p1",
        method="agent/permission",
        params={
            "requestId": "r1",
            "agent": {"id": "a1", "rootId": "a1", "agentType": "general-purpose", "description": "Mend", "chain": []},
            "tool": {"name": "Bash", "kind": "execute", "useId": "t9"},
            "title": "Run the test",
            "input": {"command": command},
            "reason": "no rule allows it",
            "detail": {"command": command, "cwd": str(FOLDER if FAULT == "in-checkout" else WORKTREE)},
            "options": [{"id": i, "kind": k, "label": label} for i, k, label in options][FAULT == "no-allow" :],
            "createdAt": "",
        },
    )
    return None


def answered(result):
    if result == {"optionId": "o1"} and FAULT != "never-runs":
        run_test()
    end()


def end():
    status = "failed" if FAULT == "fails" else "completed"
    worktree = {"path": str(WORKTREE), "branch": "agent", "baseCommit": ""}
    agent = {**AGENT, "status": status, "error": "no luck", "worktree": worktree, "usage": USAGE}
    event(kind="ended", agent=agent)


def review():
    paths = list(CHANGES)[:2] if FAULT == "short-review" else list(CHANGES)
    files = [{"path": path, "status": CHANGES[path][0], "notes": [], "hunks": []} for path in paths]
    files[0]["hunks"] = [{"header": "@@ -1 +1 @@", "text": "-old\n+new"}]
    return {"files": files}


def apply(params):
    paths = [item["path"] for item in params["files"]]
    if FAULT == "conflict":
        return {"applied": [], "conflicts": [{"path": paths[0], "reason": "changed meanwhile"}], "remaining": 3}
    if FAULT == "lies":
        return {"applied": [{"path": path, "hunks": []} for path in paths], "conflicts": [], "remaining": 0}
    write(FOLDER, CHANGES if FAULT == "applies-all" else {path: CHANGES[path] for path in paths})
    if FAULT == "leaves-a-file":
        (FOLDER / "stray").write_text("x")
    return {"applied": [{"path": path, "hunks": []} for path in paths], "conflicts": [], "remaining": 0}


def write(folder, changes):
    for path, (_, content) in changes.items():
        if content is None:
            (folder / path).unlink(missing_ok=True)
        else:
            (folder / path).write_text(content)


def main():
    while head := sys.stdin.buffer.readline():
        sys.stdin.buffer.readline()
        message = json.loads(sys.stdin.buffer.read(int(head.split(b":")[1])))
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            offered = {"version": 2 if FAULT == "version" else 1, "methods": METHODS[FAULT == "no-spawn" :]}
            send(id=number, result={"capabilities": {"experimental": {"agent": offered}}})
        elif method == "agent/spawn":
            spawn(number)
        elif method == "agent/review":
            send(id=number, result=review())
        elif method == "agent/apply":
            send(id=number, result=apply(message["params"]))
        elif method == "shutdown":
            send(id=number, result=None)
        elif method == "exit":
            return
        elif number == "p1":
            answered(message["result"])


main()
