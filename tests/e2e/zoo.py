"""Repositories and kinds of files, as data: how each is made, what an agent does in it, what is special of the outcome.

Scripts are bash. `make` and `setup` run as the user, `make` in the folder above the checkout, `setup` in it, after the
commit of `files`; `work` is the one command of the agent, in its worktree. `refused` is what is said where there can be
no worktree; `conflicts` are the paths of which something cannot be applied; `unseen` those that no review shows;
`outcomes` are contents where user and agent have both changed a file.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

LINES = "".join(f"line {number}\n" for number in range(1, 31))
CODE = {"a.txt": LINES, "src/b.py": "def b():\n    return 1\n", "empty": "", "run.sh": "#!/bin/sh\n"}
EDIT = "sed -i 's/^line 5$/line five/; s/^line 25$/line twenty-five/' a.txt; printf 'new\\n' > new.txt"
"""Two hunks in a.txt, and a file."""
BOTH = LINES.replace("line 5\n", "line five\n").replace("line 25\n", "line twenty-five\n")


@frozen
class Animal:
    name: str
    work: str = EDIT
    setup: str = ""
    make: str = ""
    checkout: str = "project"
    files: Mapping[str, str | bytes] = field(factory=lambda: dict(CODE))
    refused: str = ""
    conflicts: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    outcomes: Mapping[str, bytes] = field(factory=dict)


def shape(name: str, setup: str = "", **more: object) -> Animal:
    """What is special is the repository; the agent edits and adds a file."""
    return Animal(name, setup=setup, **more)  # type: ignore[arg-type]


def kind(name: str, work: str, files: Mapping[str, str | bytes] | None = None, **more: object) -> Animal:
    """What is special is what the agent does."""
    return Animal(name, work, files={**CODE, **(files or {})}, **more)  # type: ignore[arg-type]


def users(name: str, setup: str, work: str = EDIT, **more: object) -> Animal:
    """What is special is what the user has done meanwhile, without committing it."""
    return Animal(name, work, setup, **more)  # type: ignore[arg-type]


_FIRST = "git init -q -b main first && cd first && printf '%s' \"$LINES\" > a.txt && git add -A && git commit -qm first"

SHAPES = (
    shape("plain"),
    shape("detached head", "git checkout -q --detach"),
    shape("branch with commits that main lacks", "git switch -qc feature && echo f > f && git add f && "
          "git commit -qm f"),
    shape("linked worktree", make=f"{_FIRST} && git worktree add -q -b feature ../project && cd ../project && "
          "echo only here > f && git add f && git commit -qm feature"),
    shape("bare repository with worktrees beside it", make=f"({_FIRST}) && mkdir project && "
          "git clone -q --bare first project/.bare && git -C project/.bare worktree add -q ../main main",
          checkout="project/main"),
    shape("bare clone whose head names no branch", make=f"({_FIRST}) && mkdir project && "
          "git clone -q --bare first project/.git && cd project/.git && git symbolic-ref HEAD refs/heads/gone && "
          "git worktree add -q ../work main", checkout="project/work"),
    shape("git folder elsewhere", make=f"({_FIRST}) && git clone -q --separate-git-dir elsewhere first project"),
    shape("submodule", f"(cd .. && {_FIRST}) && git -c protocol.file.allow=always submodule -q add ../first sub && "
          "git commit -qm sub"),
    shape("configuration for each worktree", "git config extensions.worktreeConfig true && "
          "git config --worktree user.nickname x"),
    shape("sparse checkout by cone", "mkdir -p out && echo o > out/o && git add -A && git commit -qm out && "
          "git sparse-checkout set --cone src"),
    shape("sparse checkout by patterns", "echo o > other.md && git add -A && git commit -qm out && "
          "git sparse-checkout set --no-cone '/*' '!*.md'"),
    shape("shallow clone", make=f"({_FIRST} && echo 2 > two && git add two && git commit -qm two) && "
          "git clone -q --depth 1 file://$PWD/first project"),
    shape("objects of another repository", make=f"({_FIRST}) && git clone -q --shared first project"),
    shape("sha-256", make="git init -q -b main --object-format=sha256 project && cd project && "
          "printf '%s' \"$LINES\" > a.txt && git add -A && git commit -qm first"),
    shape("folder names with everything", make=f"({_FIRST}) && git clone -q first \"pro ject's ü 'q' \\$x\"",
          checkout="pro ject's ü 'q' $x"),
    shape("split index", "git update-index --split-index && git config core.splitIndex true"),
    shape("index of version 4 with an untracked cache", "git update-index --index-version 4 && "
          "git update-index --force-untracked-cache"),
    shape("programs in the configuration", "git config core.fsmonitor /bin/false && "
          "git config diff.external /bin/false && git config core.pager /bin/false && "
          "git config commit.gpgsign true && git config gpg.program /bin/false"),
    shape("hooks that would spoil it", "for hook in post-checkout post-index-change reference-transaction; do "
          "printf '#!/bin/sh\\necho spoilt >> \"$PWD/spoilt\"; exit 1\\n' > .git/hooks/$hook; "
          "chmod +x .git/hooks/$hook; done"),
    shape("no executable bits", "git config core.fileMode false && chmod +x a.txt"),
    shape("no symbolic links", "git config core.symlinks false"),
    shape("line ends by autocrlf", "git config core.autocrlf true && rm a.txt && git checkout -q -- a.txt"),
    shape("line ends by attributes", "printf '*.txt text eol=crlf\\n' > .gitattributes && git add -A && "
          "git commit -qm attributes && rm a.txt && git checkout -q -- a.txt"),
    shape("encoding by attributes", "printf '*.txt working-tree-encoding=UTF-16LE-BOM\\n' > .gitattributes && "
          "git add .gitattributes && git commit -qm attributes && rm a.txt && git checkout -q -- a.txt",
          work="printf 'new\\n' > new.md"),
    shape("filters", "git config filter.rot.clean 'tr a-z n-za-m' && "
          "git config filter.rot.smudge 'tr a-z n-za-m' && "
          "printf 'a.txt filter=rot\\n' > .gitattributes && git add --renormalize . && git add -A && git commit -qm f"),
    shape("pointers of a large file storage that is not installed", "printf '*.bin filter=lfs -text\\n' > "
          ".gitattributes && printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:00\\nsize 1\\n' > "
          "big.bin && git add -A && git commit -qm lfs", work=f"{EDIT}; sed -i s/00/11/ big.bin"),
    shape("ident", "printf '*.txt ident\\n' > .gitattributes && printf '$Id$\\n' > id.txt && git add -A && "
          "git commit -qm ident && rm id.txt && git checkout -q -- id.txt", work=f"{EDIT}; echo more >> id.txt"),
    shape("hundreds of files", "mkdir many && for n in $(seq 300); do echo $n > many/$n; done && git add -A && "
          "git commit -qm many", work="for n in $(seq 150); do echo changed > many/$n; done; rm many/2??"),
    shape("no commit yet", make="git init -q project && cd project && echo x > x", refused="has no commit yet"),
    shape("no repository", make="mkdir project && echo x > project/x", refused="is in no git repository"),
    shape("bare repository", make=f"({_FIRST}) && git clone -q --bare first project", refused="is a bare repository"),
)  # fmt: skip

USERS = (
    users("merge with conflicts under way", "git switch -qc other && echo theirs > src/b.py && git commit -qam t && "
          "git switch -q main && echo ours > src/b.py && git commit -qam o && ! git merge -q other"),
    users("rebase under way", "git switch -qc other && echo theirs > src/b.py && git commit -qam t && "
          "git switch -q main && echo ours > src/b.py && git commit -qam o && ! git rebase -q other"),
    users("staged, stashed, to be added", "echo stash >> run.sh && git stash -q && echo staged > staged && "
          "git add staged && echo later > later && git add -N later && echo untracked > untracked"),
    users("entries that git does not look at", "git update-index --assume-unchanged src/b.py && "
          "git update-index --skip-worktree run.sh && echo mine > src/b.py && echo mine > run.sh"),
    users("edits elsewhere in the same file", "sed -i 's/^line 15$/line fifteen/' a.txt",
          outcomes={"a.txt": BOTH.replace("line 15\n", "line fifteen\n").encode()}),
    users("an edit of the same line", "sed -i 's/^line 5$/line V/' a.txt", conflicts=frozenset({"a.txt"}),
          outcomes={"a.txt": BOTH.replace("line five\n", "line V\n").encode()}),
    users("the same edit", "sed -i 's/^line 5$/line five/' a.txt", outcomes={"a.txt": BOTH.encode()}),
    users("the file was deleted", "rm a.txt", conflicts=frozenset({"a.txt"})),
    users("a file of the new name", "echo mine > new.txt", conflicts=frozenset({"new.txt"}),
          outcomes={"new.txt": b"mine\n"}),
    users("a folder of the new name", "mkdir new.txt && echo mine > new.txt/x", conflicts=frozenset({"new.txt"})),
    users("line ends were changed", "sed -i 's/$/\\r/' a.txt",
          outcomes={"a.txt": BOTH.replace("\n", "\r\n").encode()}),
    users("made executable meanwhile", "chmod +x a.txt"),
)  # fmt: skip

KINDS = (
    kind("crlf", "sed -i 's/^line 5\\r$/five\\r/; 25d' w.txt", {"w.txt": LINES.replace("\n", "\r\n")}),
    kind("mixed line ends", "sed -i 's/two/2/; s/five/5/' m.txt", {"m.txt": "one\r\ntwo\nthree\r\nfour\n\nfive\r\n"}),
    kind("cr only", "printf 'one\\r2\\rthree\\r' > mac.txt", {"mac.txt": "one\rtwo\rthree\r"}),
    kind("line ends change only", "sed -i 's/$/\\r/' a.txt"),
    kind("byte order marks", "sed -i 's/one/1/' bom.txt; printf '\\357\\273\\277new\\n' > new-bom.txt; "
         "tail -c +4 bom2.txt > t && mv t bom2.txt",
         {"bom.txt": b"\xef\xbb\xbfone\ntwo\n", "bom2.txt": b"\xef\xbb\xbfx\n"}),
    kind("utf-16", "iconv -f UTF-16 -t UTF-8 u.txt | sed s/two/2/ | iconv -f UTF-8 -t UTF-16 > t && mv t u.txt",
         {"u.txt": "one\ntwo\n".encode("utf-16")}),
    kind("latin-1", "LC_ALL=C sed -i 's/two/2/' l.txt", {"l.txt": "café\ntwo\nnaïve\n".encode("latin-1")}),
    kind("bytes in no encoding", "printf '\\377\\376\\000\\001' > new.bin; printf '\\001' >> old.bin; "
         "LC_ALL=C sed -i 's/two/2/' broken.txt",
         {"old.bin": b"\0\1\2\xff", "broken.txt": b"\xff\xfeone\ntwo\n\xc3\n"}),
    kind("empty files", "touch nothing; : > a.txt; echo something > empty"),
    kind("final line ends", "printf 'def b():\\n    return 1' > src/b.py; printf 'last\\n' > open.txt",
         {"open.txt": "last"}),
    kind("white space only", "sed -i 's/^/  /; s/$/ /' src/b.py"),
    kind("executable bits", "chmod +x a.txt; chmod -x tool; echo more >> tool; printf x > new.sh; chmod +x new.sh",
         {"tool": "t\n"}, setup="chmod +x tool && git commit -qam x"),
    kind("links", "ln -s a.txt link; ln -s missing dangling; ln -sfn src old; rm run.sh && ln -s a.txt run.sh; "
         "ln -s ../.. up", setup="ln -s a.txt old && git add old && git commit -qm link"),
    kind("a link becomes a file", "rm old && echo file > old",
         setup="ln -s a.txt old && git add old && git commit -qm l"),
    kind("a file becomes a folder", "rm empty && mkdir empty && echo x > empty/x"),
    kind("a folder becomes a file", "rm -r src && echo file > src"),
    kind("renames", "git mv a.txt b.txt; mkdir deep && git mv run.sh deep/er.sh; mv src/b.py src/c.py && "
         "sed -i s/1/2/ src/c.py", {"src/b.py": "".join(f"value_{n} = {n}\n" for n in range(40))}),
    kind("letters of a name change case", "git mv a.txt A.txt"),
    kind("copies", "cp a.txt copy.txt; cp a.txt copy2.txt && echo more >> copy2.txt"),
    kind("deletions of what was not touched", "git rm -q run.sh; rm src/b.py; sed -i 2d a.txt"),
    kind("a long file and long lines", "sed -i '5000s/$/ changed/; 90000d' big.txt; "
         "head -c 3000000 /dev/zero | tr '\\0' x > line.txt", {"big.txt": "".join(f"{n}\n" for n in range(100_000))}),
    kind("odd names", "for f in 'a b' \"q'uote\" 'dou\"ble' 'back\\slash' 'ünï' '-dash' ':(top)' '*[x]?' '$(x)' "
         "'~' '#h' $'tab\\t'; do echo \"$f\" > \"./$f\"; done; echo more >> 'sp ace/ü.txt'", {"sp ace/ü.txt": "x\n"}),
    kind("names that no text can hold", "printf x > $'bad\\xff'; printf y > $'line\\nbreak'"),
    kind("ignored files", "echo i > x.log; echo forced > y.log; git add -f y.log; echo more >> kept.log",
         {".gitignore": "*.log\n"}, setup="echo kept > kept.log && git add -f kept.log && git commit -qm kept",
         unseen=frozenset({"x.log"})),
    kind("a repository inside", "git init -q inner && echo x > inner/x && " + EDIT, unseen=frozenset({"inner/x"})),
    kind("commits", f"{EDIT}; git add -A; git commit -qm one; "
         "echo two > two; git add two; git commit -qm two; rm run.sh"),
    kind("commits that were taken back", f"{EDIT}; git add -A; git commit -qm one; "
         "git reset -q --hard HEAD^; echo x > x"),
    kind("another branch", f"git switch -qc agent-mine; {EDIT}; git add -A; git commit -qm m"),
    kind("detached by the agent", f"git checkout -q --detach; {EDIT}; git add -A; git commit -qm loose"),
    kind("attributes of the agent", "printf '*.txt text eol=crlf ident filter=x\\n' > .gitattributes; " + EDIT),
    kind("its own git folder was replaced", "echo 'gitdir: /nonexistent' > .git; " + EDIT),
)  # fmt: skip

ANIMALS = (*SHAPES, *USERS, *KINDS)
