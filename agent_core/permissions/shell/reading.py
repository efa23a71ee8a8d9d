"""Commands that only read: they need no ask in any mode where they may read what they name. Pure but for patterns.

A command is here only with words that are known. `reads` gives the words that name files, None when the command may
write, run something, or do what nobody thought of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from agent_core.permissions.shell.parse import SimpleCommand
from agent_core.permissions.shell.words import Word

Reader = Callable[[Sequence[Word]], Sequence[Word] | None]


def reads(command: SimpleCommand) -> Sequence[Word] | None:
    """The words that name files; of a search that goes down folders see `goes_down`."""
    if command.assignments or command.program is None:
        return None
    reader = _READERS.get(command.program)
    return reader(command.words[1:]) if reader else None


def goes_down(command: SimpleCommand) -> bool:
    """It shows the content of files that it finds by itself, which rules may hide."""
    texts = [word.literal or "" for word in command.words]
    if command.program in ("grep", "egrep", "fgrep"):
        return any(re.match(r"-\w*[rRd]|--(r|de|di)", text) for text in texts[1:])
    if command.program == "diff":
        return any(re.match(r"-\w*r|--r", text) for text in texts[1:])
    return command.program == "rg" or (command.program == "git" and "grep" in texts)


def _anything(words: Sequence[Word]) -> Sequence[Word]:
    """It looks at no file, whatever it is given."""
    return ()


def _nothing(words: Sequence[Word]) -> Sequence[Word] | None:
    return None if words else ()


def _only(allowed: str) -> Reader:
    def reader(words: Sequence[Word]) -> Sequence[Word] | None:
        return () if all(re.fullmatch(allowed, word.literal or "\0") for word in words) else None

    return reader


def _files(letters: str = "", long: tuple[str, ...] = (), *, skip: int = 0, most: int | None = None) -> Reader:
    """Words that are no options are files. `letters` and `long` are options that write or run something; the first
    `skip` words are none; of more than `most` the last is written to."""

    def reader(words: Sequence[Word]) -> Sequence[Word] | None:
        options, rest = _sorted(words)
        if any(_forbidden(word, letters, long) for word in options):
            return None
        careful = bool(letters or long or most)
        if careful and any(word.pattern and (word.text or "*")[0] in "*?[{" for word in rest):
            return None  # a file may be named like an option
        if any(word.pattern for word in (rest[:skip] if most is None else rest)):
            return None  # it may stand for several words
        if any(word.text is None for word in words) or (most is not None and len(rest) > most):
            return None
        return [*(word for word in rest[skip:] if word.text != "-"), *options]

    return reader


def _sorted(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """(options, the others)."""
    options: list[Word] = []
    rest: list[Word] = []
    ended = False
    for word in words:
        text = word.text or ""
        if text == "--" and not ended:
            ended = True
        elif text.startswith("-") and text != "-" and not ended:
            options.append(word)
        else:
            rest.append(word)
    return options, rest


def _forbidden(word: Word, letters: str, long: tuple[str, ...]) -> bool:
    text = word.literal
    if text is None:
        return True
    if not text.startswith("--"):
        return any(letter in text for letter in letters)
    name = text.split("=", 1)[0]
    return any(each.startswith(name) or name.startswith(each) for each in long)


def _grep(words: Sequence[Word]) -> Sequence[Word] | None:
    """Long options in full only: of a shortened one nobody knows whether the pattern stands in it."""
    options, _ = _sorted(words)
    texts = [word.text or "" for word in options]
    if any(text.startswith("--") and text.split("=", 1)[0] not in _GREP_LONG for text in texts):
        return None
    if any(re.match(r"-\w*R", text) for text in texts):
        return None  # it follows links
    named = any(re.match(r"-\w*[ef]|--regexp|--file|--type-list|--files", text) for text in texts)
    return _files("", ("--pre", "--hostname-bin", "--search-zip"), skip=0 if named else 1)(words)


_GREP_LONG = frozenset(
    f"--{name}"
    for name in (
        *("regexp", "file", "ignore-case", "no-ignore-case", "word-regexp", "line-regexp", "invert-match", "count"),
        *("files-with-matches", "files-without-match", "line-number", "with-filename", "no-filename", "only-matching"),
        *("quiet", "silent", "no-messages", "max-count", "after-context", "before-context", "context", "color"),
        *("colour", "extended-regexp", "fixed-strings", "basic-regexp", "perl-regexp", "recursive", "include"),
        *("exclude", "exclude-dir", "text", "binary-files", "null", "byte-offset", "initial-tab", "label", "version"),
        *("files", "type", "type-not", "type-list", "glob", "hidden", "no-ignore", "smart-case", "json", "stats"),
        *("no-heading", "heading", "column", "vimgrep", "sort", "multiline", "max-depth", "no-line-number", "pcre2"),
    )
)


def _find(words: Sequence[Word]) -> Sequence[Word] | None:
    """Folders come before the tests, and hardly any test writes; those that do are named."""
    bad = re.compile(r"-(exec|execdir|ok|okdir|delete|fprint.*|fls|files0-from)")
    if any(word.text is None or (word.pattern and word.text[:1] in "*?[{-") for word in words):
        return None
    if any(bad.fullmatch(word.text or "") or word.text in ("--", "-D") for word in words):
        return None
    while words and re.fullmatch(r"-[HLP]|-O\d?", words[0].text or ""):
        words = words[1:]
    start = next((index for index, word in enumerate(words) if (word.text or "")[:1] in ("-", "(", "!")), len(words))
    named = [words[index + 1] for index, word in enumerate(words[:-1]) if re.match("-newer|-samefile", word.text or "")]
    return [*words[:start], *named]


def _sed(words: Sequence[Word]) -> Sequence[Word] | None:
    """Only `sed -n 'LINESp' FILES`."""
    texts = [word.literal for word in words]
    if len(texts) < 2 or texts[0] != "-n" or not re.fullmatch(r"(\d+|\$)(,(\d+|\$))?p", texts[1] or ""):
        return None
    return _files("ief", ("--in-place", "--expression", "--file"))(words[2:])


_GIT_OPTIONS = (
    *("--output", "--ext-diff", "--textconv", "--no-index", "--open-files-in-pager", "--exec", "--contents"),
    *("--ignore-revs-file", "--exclude-from", "--pathspec-from-file", "--no-get", "--file", "--blob"),
)
_GIT_FREE = frozenset(
    {"status", "log", "show", "diff", "rev-parse", "ls-files", "ls-tree", "blame", "describe", "shortlog", "rev-list"}
    | {"merge-base", "name-rev", "for-each-ref", "diff-tree", "diff-index", "diff-files", "count-objects", "show-ref"}
    | {"check-ignore", "check-attr", "whatchanged", "cherry", "version", "cat-file", "grep", "range-diff", "var"}
)
_GIT_SHOWS = frozenset(
    {"diff", "grep", "log", "blame", "ls-files", "status", "show", "cat-file", "whatchanged"}
    | {"diff-tree", "diff-index", "diff-files", "ls-tree", "check-attr", "rev-list", "range-diff"}
)
_GIT_LISTS: Mapping[str, str] = {
    "branch": r"-[arvi]+|-vv|--list|--all|--remotes|--verbose|--show-current|--no-color|--column|--sort=.*|--format=.*",
    "tag": r"-l|--list|-n\d*|--sort=.*|--format=.*|--column",
    "remote": r"-v|--verbose|get-url|--all|--push",
    "stash": r"list",
    "worktree": r"list|--porcelain|-v",
    "reflog": r"show|-n|\d+|-\d+|HEAD",
    "config": r"--list|-l|--show-origin|--show-scope|--global|--local|--system",
    "submodule": r"status|--recursive",
}


def _git(words: Sequence[Word]) -> Sequence[Word] | None:
    texts = [word.literal for word in words]
    while texts and texts[0] in ("--no-pager", "-P", "--no-optional-locks"):
        texts = texts[1:]
    if not texts:
        return ()
    if any(text is None for text in texts) and not all(_tame(word) for word in words):
        return None
    verb, *rest = [text or "" for text in texts]
    if verb in _GIT_LISTS:
        plain = not any(text.startswith("-") for text in rest[1:])
        listing = verb == "config" and rest[:1] in (["--get"], ["--get-all"], ["get"]) and plain
        if verb in ("stash", "submodule", "worktree") and not rest:
            return None
        known = [re.fullmatch(_GIT_LISTS[verb], text) is not None for text in rest]
        return () if listing or all(known) or _names_only(verb, rest, known) else None
    options = rest[: rest.index("--")] if "--" in rest else rest
    if verb not in _GIT_FREE or any(_forbidden(Word(text, text), "", _GIT_OPTIONS) for text in options):
        return None
    if verb == "grep" and any(re.match(r"-[a-zA-Z]*[Of]", text) for text in rest):
        return None
    return [each for word in words[1:] for each in _git_files(word)] if verb in _GIT_SHOWS else ()


def _names_only(verb: str, rest: Sequence[str], known: Sequence[bool]) -> bool:
    """Of a listing that is asked for by its option, or of one remote, any name that is no option."""
    asked = {"branch": ("-l", "--list"), "tag": ("-l", "--list"), "remote": ("get-url",)}.get(verb, ())
    plain = all(ok or (not text.startswith("-") and ":" not in text) for text, ok in zip(rest, known, strict=True))
    return plain and rest[:1] != [] and rest[0] in asked


def _git_files(word: Word) -> Sequence[Word]:
    """A word may be a file, or name one behind a revision; what names none does no harm."""
    text = word.literal
    if text is None or text.startswith("-"):
        return () if text else (word,)
    parts = dict.fromkeys((text.partition(":")[2], text.rpartition(":")[2], text.rpartition(")")[2]))
    return (word, *(Word(part, part) for part in parts if part and part != text))


def _tame(word: Word) -> bool:
    """A pattern that stands for no option."""
    return word.literal is not None or (word.pattern and (word.text or "*")[0] not in "*?[{-" and not word.home)


def _jq(words: Sequence[Word]) -> Sequence[Word] | None:
    """Not with a program that reads more than it is given."""
    if any(re.search(r"import|include|env|ENV|input_filename|search", word.text or "env") for word in words):
        return None
    return _files("fL", ("--from-file", "--slurpfile", "--rawfile"), skip=1)(words)


def _printf(words: Sequence[Word]) -> Sequence[Word] | None:
    return None if words and (words[0].literal is None or words[0].literal.startswith("-")) else ()


def _command(words: Sequence[Word]) -> Sequence[Word] | None:
    return () if words and words[0].literal in ("-v", "-V") else None


def _folder(words: Sequence[Word]) -> Sequence[Word] | None:
    """`cd`: one folder that is named."""
    return list(words) if len(words) == 1 and (words[0].text or "-")[0] != "-" else None


_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("echo", "true", "false", ":", "basename", "dirname", "seq", "expr", "sleep"), _anything),
    **dict.fromkeys(("pwd", "whoami", "id", "nproc", "arch", "uptime", "groups", "tty", "logname"), _only(r"-\w+")),
    **dict.fromkeys(("which", "type"), _anything),
    "uname": _only(r"-\w+"),
    "hostname": _nothing,
    "date": _only(r"\+.*|-u|-R|-I\w*|--utc|--iso-8601(=\w+)?|--rfc-3339=\w+"),
    "printf": _printf,
    "command": _command,
    "test": _files(),
    "cd": _folder,
    **dict.fromkeys(("cat", "head", "tail", "ls", "stat", "nl", "tac", "rev", "cut", "fold", "fmt"), _files()),
    "diff": _files("r", ("--recursive", "--from-file", "--to-file")),
    **dict.fromkeys(("paste", "join", "comm", "cmp", "column", "od", "hexdump", "strings", "df"), _files()),
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "readlink", "realpath"), _files()),
    "wc": _files("", ("--files0-from",)),
    "du": _files("", ("--files0-from",)),
    "file": _files("mfC", ("--magic-file", "--files-from", "--compile")),
    "sort": _files("oT", ("--output", "--compress-program", "--files0-from", "--temporary-directory")),
    "uniq": _files(most=1),
    "xxd": _files("r", ("--revert",), most=1),
    "tree": _files("oR", ("--output",)),
    "tr": _anything,
    "jq": _jq,
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg"), _grep),
    "find": _find,
    "sed": _sed,
    "git": _git,
}
