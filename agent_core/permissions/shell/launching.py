"""Commands that run what they are given: no rule with a wildcard frees them, restrictions look into them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from agent_core.permissions.shell.parse import SimpleCommand, parse
from agent_core.permissions.shell.words import Word

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh", "pwsh", "rbash"})
_ALWAYS = (
    frozenset({"eval", "source", ".", "exec", "env", "sudo", "doas", "su", "runuser", "pkexec", "xargs", "watch"})
    | frozenset({"setsid", "ionice", "flock", "script", "parallel", "ssh", "nsenter", "unshare", "chroot", "strace"})
    | frozenset({"ltrace", "taskset", "chrt", "chronic", "entr", "busybox", "toybox", "systemd-run", "at", "batch"})
    | frozenset({"crontab", "trap", "alias", "coproc", "enable", "complete", "bind", "expect", "socat", "gdb", "dbx"})
    | frozenset({"unbuffer", "setarch", "linux64", "prlimit", "firejail", "bwrap", "proot", "fakeroot", "numactl"})
    | frozenset({"setpriv", "choom", "sg", "hash", "compgen", "ld.so"})
    | frozenset({"nc", "ncat", "xvfb-run", "dbus-run-session", "command_not_found_handle", "mapfile", "readarray"})
)
_WRAPPERS = frozenset({"timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob"})
_TEXT_SHORT: Mapping[str, str] = {
    "python": "ci",
    "pypy": "ci",
    "perl": "eE",
    "ruby": "e",
    "node": "ep",
    "nodejs": "ep",
    "php": "rBRE",
    "lua": "e",
    "Rscript": "e",
    "R": "e",
    "osascript": "e",
    "julia": "eE",
    "vim": "cS",
    "nvim": "cS",
    "vi": "cS",
    "emacs": "",
    "make": "",
    "gmake": "",
}
"""Letters of options that take a program's text."""
_TEXT_LONG: Mapping[str, tuple[str, ...]] = {
    "node": ("--eval", "--print", "--require", "--import", "--loader"),
    "nodejs": ("--eval", "--print", "--require", "--import", "--loader"),
    "emacs": ("--eval", "--execute", "-eval", "--load", "-l", "-f", "--funcall"),
    "make": ("--eval",),
    "gmake": ("--eval",),
    "tar": ("--to-command", "--use-compress-program", "--checkpoint-action", "--rsh-command", "--info-script"),
    "rsync": ("--rsh",),
    "julia": ("--eval", "--print"),
    "split": ("--filter",),
    "sort": ("--compress-program",),
    "rg": ("--pre", "--hostname-bin"),
    "man": ("--pager", "--html", "-P", "-H"),
    "vim": ("--cmd",),
    "nvim": ("--cmd",),
    "vi": ("--cmd",),
}
_NEEDS_FILE = frozenset({"python", "pypy", "perl", "ruby", "node", "nodejs", "php", "lua", "julia", "Rscript", "R"})
"""Without a file they run what comes in."""
_FIND = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"})
_BEFORE_COMMAND = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_GIT_BEFORE = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"})
_GIT_RUNS = frozenset({"filter-branch", "config", "difftool", "mergetool", "daemon", "instaweb", "send-email", "gui"})
_GIT_OPTIONS = ("--exec", "--upload-pack", "--receive-pack", "--ext-diff", "--textconv", "--open-files-in-pager")


_RUNNERS = frozenset(
    {"npx", "pnpm", "yarn", "bunx", "uv", "uvx", "docker", "podman", "tmux", "screen", "kubectl", "man"}
)
"""They run what they are given as well, which an allow rule for them may mean; restrictions look inside."""
_OPAQUE = frozenset(
    {"sed", "awk", "gawk", "mawk", "nawk", "make", "gmake", "tar", "rsync", "vim", "nvim", "vi", "split", "sort", "rg"}
    | {"man", "ssh"}
)
_GIT_KNOWN = frozenset(
    {"add", "am", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore"}
    | {"checkout", "cherry", "cherry-pick", "clean", "clone", "commit", "commit-tree", "count-objects", "describe"}
    | {"diff", "diff-files", "diff-index", "diff-tree", "fetch", "for-each-ref", "format-patch", "fsck", "gc", "grep"}
    | {"hash-object", "help", "init", "log", "ls-files", "ls-remote", "ls-tree", "maintenance", "merge", "merge-base"}
    | {"mktree", "mv", "name-rev", "notes", "prune", "pull", "push", "range-diff", "read-tree", "rebase", "reflog"}
    | {"remote", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show", "show-ref"}
    | {"sparse-checkout", "stash", "status", "submodule", "switch", "symbolic-ref", "tag", "update-index", "update-ref"}
    | {"var", "version", "whatchanged", "worktree", "write-tree"}
)
_SED_COMMAND = re.compile(
    r"\s*(?:(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)(?:,(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?))?\s*!?\s*)?"
    r"(?:[pdqDPnNhHgGxl=]|s([/|#,:@%_~+])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gIip\d]*)\s*(?:[;\n]|$)"
)
"""One command of sed that neither runs nor writes anything."""


def _sed_is_plain(texts: Sequence[str | None]) -> bool:
    """Every script is made of such commands; a word that follows them is a file."""
    if any(text is None or re.match(r"-\w*f|--f|--e.*=", text) or _is_input(text) for text in texts):
        return False
    words = [text or "" for text in texts]
    marked = [words[index + 1] for index, word in enumerate(words[:-1]) if re.fullmatch(r"-\w*e|--expression", word)]
    glued = [word for word in words if re.match(r"-[nErsuz]*e.", word)]
    scripts = marked or [word for word in words if not word.startswith("-")][:1]
    return not glued and all(map(_is_plain_script, scripts))


def _is_plain_script(script: str) -> bool:
    at = 0
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return True


def opaque(command: SimpleCommand) -> bool:
    """It runs something that does not stand among its words as such, as text of its own language or in an option."""
    words = command.words[1:]
    texts = [word.literal or "" for word in words]
    if command.program is None or any(word.literal is None for word in words) or not launches(command):
        return False
    name = family(command.program)
    if name == "git":
        return any(_abbreviates(text, each) for text in texts for each in _GIT_OPTIONS) or "ext::" in " ".join(texts)
    return name in _OPAQUE


def runs_unseen(command: SimpleCommand) -> bool:
    """What it runs comes in, from a here-document, a pipe or another machine, so that a rule for it says nothing."""
    name = family(command.program or "")
    files = [word for word in command.words[1:] if _is_file(word.literal)]
    if name == "xargs" or (name == "ssh" and len(files) < 2):
        return True
    return name in _SHELLS | _NEEDS_FILE | {"source", "."} and not files


def family(program: str) -> str:
    """`/usr/bin/python3.11` is python."""
    name = program.rsplit("/", 1)[-1]
    if re.match(r"ld(-linux|-musl|\.so)", name):
        return "ld.so"  # it runs what it is given
    return re.sub(r"(?<=[a-z])[\d.]+$", "", name) or name


def launches(command: SimpleCommand) -> bool:
    """It runs, or may run, another program or a text that stands among its arguments, or that comes from somewhere."""
    program = command.program
    if program is None:
        return bool(command.words)
    name, words = family(program), command.words[1:]
    texts = [word.literal for word in words]
    if name in _ALWAYS:
        return name != "env" or any(text is None or not text.startswith("-") for text in texts)
    if name in _SHELLS:
        return not texts or _runs_text(name, words, "cs") or not any(_is_file(text) for text in texts)
    if name == "find":
        if any(word.pattern and "{" in (word.text or "{") for word in words):
            return True
        return any(text is None or text in _FIND for text in texts if not _is_pattern(words, text))
    if name == "git":
        return _git_launches(words)
    if name in ("awk", "gawk", "mawk", "nawk"):
        return any(text is None or _is_input(text) or re.search(r"system|\||getline|>|@load", text) for text in texts)
    if name == "sed":
        return not _sed_is_plain(texts)
    if name in _TEXT_SHORT or name in _TEXT_LONG:
        needs_file = name in _NEEDS_FILE and not any(_is_file(text) for text in texts)
        reads_input = name in ("make", "gmake") and any(text in ("-f-", "-") for text in texts)
        short_tar = name == "tar" and any(re.fullmatch(r"-?\w*[IF]\w*.*", text or "") for text in texts)
        short_rsync = name == "rsync" and any(re.fullmatch(r"-\w*e.*", text or "") for text in texts)
        started = name in ("vim", "nvim", "vi") and any((text or "+").startswith("+") for text in texts)
        own = short_tar or short_rsync or started
        return needs_file or reads_input or own or _runs_text(name, words, _TEXT_SHORT.get(name, ""))
    return False


def _is_file(text: str | None) -> bool:
    return text is not None and not text.startswith("-") and not _is_input(text)


def _is_input(text: str) -> bool:
    """What comes in, by one of its names."""
    return text == "-" or text.startswith(("/dev/", "/proc/"))


def _is_pattern(words: tuple[Word, ...], text: str | None) -> bool:
    """Of `find . -name *.py` the pattern is no option."""
    return text is None and all(word.literal is not None or word.pattern for word in words)


def _runs_text(name: str, words: tuple[Word, ...], letters: str) -> bool:
    """An option says that program text follows, or what nobody knows may be one."""
    for word in words:
        text = word.literal
        if text is None:
            return not word.pattern or (word.text or "*")[0] in "*?[{-"
        if letters and re.match(rf"-[A-Za-z]*[{letters}]", text) and not text.startswith("--"):
            return True
        if _is_input(text) or any(_abbreviates(text, each) for each in _TEXT_LONG.get(name, ())):
            return True
        if name in _SHELLS and text in ("--command", "--init-command", "--rcfile", "--init-file", "-i"):
            return True
    return False


def _abbreviates(text: str, option: str) -> bool:
    given = text.split("=", 1)[0]
    return given == option or (given.startswith("--") and len(given) > 2 and option.startswith(given))


def _git_launches(words: tuple[Word, ...]) -> bool:
    texts = [word.literal for word in words]
    if any(word.literal is None and not word.pattern for word in words):
        return True
    before = next((index for index, text in enumerate(texts) if text is None or not text.startswith("-")), len(texts))
    if any(text not in _GIT_BEFORE for text in texts[:before]):
        return True
    verb, rest = (texts[before] if before < len(texts) else ""), [text or "" for text in texts[before + 1 :]]
    if any("ext::" in (text or "") or "fd::" in (text or "") for text in texts):
        return True
    if verb and verb not in _GIT_KNOWN:
        return True
    if verb is None or verb in _GIT_RUNS or any(_abbreviates(text, each) for text in rest for each in _GIT_OPTIONS):
        return True
    if verb in ("bisect", "submodule", "stash") and any(text in ("run", "foreach") for text in rest):
        return True
    if verb == "grep" and any(re.match(r"-[a-zA-Z]*O", text) for text in rest):
        return True
    remote = verb in ("init", "clone", "fetch", "pull", "push", "ls-remote", "remote", "archive", "submodule")
    if remote and any(re.match(r"ext::|fd::|-[a-z]*[uc]\b|.*--(upload|receive|conf|temp)", text) for text in rest):
        return True
    return verb == "rebase" and any(re.match(r"-[a-wyz]*x", text) for text in rest)


_VALUED: Mapping[str, str] = {
    "sudo": r"-[ugphrtCDRTU]|--(user|group|prompt|host|role|type|chdir|chroot)",
    "doas": r"-[uC]",
    "env": r"-[uC]|--(unset|chdir)",
    "exec": r"-a",
    "nice": r"-n",
    "timeout": r"-[ks]",
    "stdbuf": r"-[ioe]",
    "ionice": r"-[cn]",
    "xargs": r"-[IndLPsE]",
}
"""Options, of commands that run others, whose value is the next word."""
_TEXTS = frozenset({"eval", "trap", "alias"})
"""Their words are programs; of an alias behind its name."""
_GIT_MAY_RUN = _GIT_RUNS | {"bisect", "submodule", "rebase"}


_FROM_INPUT = Word("<what the shell reads>", None)


def _reads_input(texts: Sequence[str | None]) -> bool:
    """Of a shell."""
    asked = any(re.fullmatch(r"-[A-Za-z]*s[A-Za-z]*", text or "") for text in texts)
    return asked or not any(text is None or _is_file(text) for text in texts)


def _git_runs_words(words: tuple[Word, ...]) -> bool:
    """Among the words of this call there may be a program."""
    verb = next((word for word in words if not (word.literal or "").startswith("-")), None)
    before = words[: words.index(verb)] if verb else words
    named = verb is not None and verb.literal is not None and verb.literal not in _GIT_MAY_RUN
    return not named or any(word.literal not in _GIT_BEFORE for word in before)


def _program_text(name: str, text: str) -> str:
    """What a shell reads of a word: of `alias x=...`, `git -c alias.x=!...` and `!...` what comes behind."""
    if name == "alias" or (name == "git" and re.match(r"[\w.-]+=", text)):
        text = text.partition("=")[2]
    return text.lstrip("!") if name == "git" else text


def inner_commands(command: SimpleCommand, depth: int = 4) -> Iterator[tuple[SimpleCommand, bool]]:
    """What may be run inside, with whether that is certain: for rules that deny or ask."""
    name = family(command.program or "")
    looks_inside = name in _ALWAYS | _SHELLS | _WRAPPERS | _RUNNERS | {"find", "git"}
    if not looks_inside or depth == 0 or (name == "git" and not _git_runs_words(command.words[1:])):
        return
    texts = [word.literal for word in command.words[1:]]
    sourced = name in ("source", ".") and any(text is None or _is_input(text) for text in texts)
    if sourced or (name in _SHELLS and _reads_input(texts)):
        yield SimpleCommand((_FROM_INPUT,), (), command.source), False
    certain = name not in _RUNNERS
    for index in range(1, len(command.words)):
        word = command.words[index]
        inner = SimpleCommand(command.words[index:], (), command.source)
        yield inner, certain
        if (inner.program or "-")[0] != "-":
            yield from ((each, certain and sure) for each, sure in inner_commands(inner, depth - 1))
        text = word.literal
        if text is not None and (name in ("alias", "git") or re.search(r"[\s;|&<>`$()]", text)):
            for each in parse(_program_text(name, text)).commands:
                yield each, name in _SHELLS or name in _TEXTS
                yield from inner_commands(each, depth - 1)
        if text is not None and text.startswith("-") and (glued := re.sub(r"^(-[A-Za-z]|--[\w-]+=)", "", text)) != text:
            yield from ((each, False) for each in parse(glued).commands)
        if certain and re.fullmatch(_VALUED.get(name, r"(?!)"), command.words[index - 1].literal or "\0"):
            continue
        if text is None or not (text.startswith("-") or "=" in text or text.replace(".", "").rstrip("smhd").isdigit()):
            certain = text in _BEFORE_COMMAND or (certain and text == name)
        elif text in _BEFORE_COMMAND:
            certain = True
    if name == "eval":
        for each in parse(" ".join(word.text or "" for word in command.words[1:])).commands:
            yield each, True
