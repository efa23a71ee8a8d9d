"""Ways past the rules that somebody found once, each with its kind: none of them is free (PM-4, PM-2, B7, B12)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.permissions.options import options_for
from agent_core.permissions.types import PermissionMode
from tests.shell_corpus import furnish
from tests.unit.agent_core.permissions.shell.test_deciding import Rules, bash, context, decided

pytestmark = pytest.mark.spec("PM-4", "PM-2")

GUARD: Rules = {"allow": ["Bash"], "deny": ["Bash(rm *)", "Bash(curl *)", "Read(.env)", "Read(~/Desktop/**)"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    furnish(work)
    (work / "d").mkdir()
    return work


@pytest.mark.parametrize(
    "command",
    [
        # what the grammar and bash read differently
        "echo =~ \nrm x",
        'echo "$ $(rm x)"',
        'echo "=~ $ $(rm x)}"',
        'echo "$ `rm x`"',
        "ls =~ \nrm x",
        "echo =~ #\nrm x",
        "cat <<E\n$z`rm x`\n",
        'echo ${x:-for i in  #`touch made`  \\`<<\\E\n\\"\x0b}',
        'echo "${z:-`rm x`}"',
        "echo \"${z:-$'\\x24(rm x)'}\"",
        "cat <<E\n${z:-'$(rm x)'}\nE",
        "cat <<E\n\\\nE\n\ntouch made\n\nE\n",
        "echo ^\\\n#&touch made ]]",
        "cat <<E\nE<<\\E\n$(touch made)<<<\nE\n",
        "cat <<E\nE #$(touch made)$x}",
        "echo <<E\n\n\tE\n#-time `touch made`)",
        "\r#|touch made ]]",
        "cat <<E\nE#&&`touch made`))",
        "test <<<\r\ntouch made\necho }",
        "cat <<E\n\\'while  #case x in \tx$(touch made)*\nE\n",
        "\\ #$(touch made)time }",
        # options that read, write or run more
        "echo \"${z:-'$(rm x)'}\"",
        "echo =~ |rm x ]]",
        "echo =~ ;rm x ]]",
        "echo =~ a;rm x ]]",
        "x=(['$(rm x)']=1)",
        "y='a[$(rm x)]'; z=([y]=1)",
        "git config --get --no-get core.fsmonitor 'touch made'",
        "git config --file=/tmp/x --get a b",
        "uniq - .git/config",
        "xxd - FILE",
        "grep --rege=root /etc/passwd",
        "grep -5eroot /etc/passwd",
        "grep --fil=x /etc/passwd",
        "grep -R x .",
        'jq -n \'import "x" as $d {search:"/tmp/attack"}; $d\'',
        "find -- /etc",
        "find -D exec /etc",
        "git blame --ignore-revs-file=/etc/passwd x",
        "cd src/../.. && cat secret.txt",
        "diff -r a src",
    ],
)
def test_b7_without_rules_nobody_runs_it_unasked(folder: Path, command: str) -> None:
    assert decided(command, context(folder, {}), folder) == "ask"
    assert decided(command, context(folder, {}, PermissionMode.DONT_ASK), folder) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat .[^x]nv",
        "cat .[[:alpha:]]nv",
        'cat .[e"]"]nv',
        "cat .{e..e}nv",
        "diff --from-file=.env a.txt",
        "hexdump -f.env a.txt",
        "strings @.env",
        "grep --recu '' .",
        "grep --directories=recurse '' .",
        "grep -5r '' .",
        "git -P --no-optional-locks grep SECRET",
        "git show :0:.env",
        "git cat-file -p :0:.env",
        "git diff-index -p TREE -- .env",
        "git blame --ignore-revs-file=.env x",
        "/bin/cat .env",
        "nohup /bin/cat .env",
        "sudo cat .env",
        "env cat .env",
        "busybox cat .env",
        "bash -c 'cat .env'",
        "eval cat .env",
        "bash .env",
        "x=.env; cat $x",
        "cat .env$z",
        "cat $(echo .env)",
        "cat ~+/.env",
        "cat /proc/self/cwd/.env",
        "echo .env | xargs cat",
        "pr .env",
        "dd if=.env",
        "xz -c .env",
        "sed 'r .env' x",
        "git archive HEAD .env",
        "cd && cat Desktop/x",
        "cat ~root/Desktop/x",
        "env -S'rm x'",
        ". /dev/stdin <<< 'rm x'",
        "setpriv rm x",
        "choom -n 0 -- rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "su - root --command='rm x'",
        "sg root -c 'rm x'",
        "BASH_ENV=<(echo rm x) bash -c :",
        "hash -p /bin/rm ls; ls x",
        "BASH_CMDS[ls]=/bin/rm; ls x",
        "compgen -C 'rm x'",
        "split --filter='rm x' a",
        "make -f - <<< 'x:;rm x'",
        "sed '1e rm x' a",
        "awk 'BEGIN{system(\"rm x\")}'",
        "env --split-string='rm x'",
        "tmux new -d 'rm x'",
        "npx rm x",
        "docker exec x rm y",
        "tar --to-command='rm x' -xf a",
        "rsync -e 'rm x' a b",
        "ssh -oProxyCommand='rm x' h",
        "vim -c '!rm x'",
        "git fetch --upload-pack='rm x' o",
        "GIT_PAGER='rm x' git log",
    ],
)
def test_b7_b12_what_is_denied_is_not_reached_in_another_way(folder: Path, command: str) -> None:
    assert decided(command, context(folder, GUARD), folder) in ("ask", "deny")


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("sed", "sed '1etouch made' f"),
        ("sed", "sed 's:a:touch made:e' f"),
        ("sed", "sed 's/a/touch made/Me' f"),
        ("sed", "sed -f - f <<< '1e touch made'"),
        ("awk", "awk -f - <<< 'x'"),
        ("awk", "awk -f /dev/stdin <<< 'x'"),
        ("find", "find . {-exec,touch,made} \\;"),
        ("git", "git clone --config core.sshCommand='touch made;' ssh://x/y"),
        ("git", "git remote-ext origin 'touch made'"),
        ("git", "git merge-index touch -a"),
        ("git", "git fetch-pack ext::x y"),
        ("git", "git archive --remote=ext::x HEAD"),
        ("git", "git init --template=x"),
        ("git", "git hook run x"),
        ("sort", "sort --compress-program=./m.sh a"),
        ("rg", "rg --pre ./m.sh x"),
        ("vim", "vim --cmd '!touch made'"),
        ("man", "man -P ./m.sh ls"),
        ("export", "export GIT_SSH_COMMAND=x"),
    ],
)
def test_b7_a_rule_for_a_program_frees_no_other(folder: Path, program: str, command: str) -> None:
    assert decided(command, context(folder, {"allow": [f"Bash({program} *)"]}), folder) == "ask"


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("sed", "sed -n '1,5p' f"),
        ("sed", "sed 's/a/b/g' f"),
        ("sed", "sed -e 's/a/b/' -e '/x/d' f"),
        ("sed", "sed -i.bak '$d' f"),
        ("awk", "awk '{print $1}' f"),
        ("git", "git commit -m x"),
        ("git", "git push origin main"),
        ("git", "git clone https://x/y"),
        ("sort", "sort -u a"),
        ("rg", "rg -n x src"),
        ("find", "find . -name '*.py'"),
        ("export", "export FOO=bar"),
    ],
)
def test_a_rule_for_a_program_frees_its_usual_calls(folder: Path, program: str, command: str) -> None:
    assert decided(command, context(folder, {"allow": [f"Bash({program} *)"]}), folder) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "echo ${x:-$HOME/y} ${x##*/} ${x%.*} ${x:0:3} ${x/a/b}",
        "cat <<E\nhello $x\nE",
        "cat <<'E'\n$(not run) `nor this`\nE",
        "[[ $x =~ ^a.*b$ ]] && ls",
        "grep -rn x src",
        "find . -name '*.py' -newer a.txt",
        "git config --get user.name",
        "uniq a.txt",
        "jq '.a | length' a.txt",
    ],
)
def test_what_only_reads_stays_free(folder: Path, command: str) -> None:
    assert decided(command, context(folder, {}), folder) == "allow"


@pytest.mark.spec("PM-5")
@pytest.mark.parametrize(
    "command",
    [
        "bash <<'E'\nls\nE",
        "echo x | bash",
        "python3 <<'E'\nprint(1)\nE",
        "echo x | xargs touch",
        'eval "$x"',
        'bash -c "$x"',
        "sh",
        "ssh h",
        'curl "$u"',
    ],
)
def test_no_lasting_answer_for_what_nobody_sees(folder: Path, command: str) -> None:
    options = options_for(bash(command, folder), context(folder, {}), None)
    assert [option.rules for option in options if option.kind.allows and option.rules] == []


@pytest.mark.spec("PM-3")
@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("cp a.txt src", "allow"),
        ("cp src/.envrc .", "ask"),
        ("cp -r src/.vscode .", "ask"),
        ("cp -r src/. .", "ask"),
        ("cp src/.* .", "ask"),
        ("mv src/.bashrc .", "ask"),
        ("cp a.txt d", "ask"),
    ],
)
def test_what_is_copied_into_a_folder_is_written_there(folder: Path, command: str, decision: str) -> None:
    """A file of the folder `d` leads out."""
    (folder / "d" / "a.txt").symlink_to(folder.parent / "outside")
    assert decided(command, context(folder, {}, PermissionMode.ACCEPT_EDITS), folder) == decision
