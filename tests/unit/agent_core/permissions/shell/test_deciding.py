"""Shell commands, part by part: what runs unasked, what asks, what is refused (PM-4), under a few sets of rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.permissions.decision import decide
from agent_core.permissions.options import options_for
from agent_core.permissions.policy import Call, PolicyContext
from agent_core.permissions.rules import MatchContext, parse_rule
from agent_core.permissions.shell.deciding import explain_command
from agent_core.permissions.shell.visible import hides, visible
from agent_core.permissions.types import (
    Allow,
    Behavior,
    OptionKind,
    PermissionFacts,
    PermissionMode,
    PermissionRule,
    ToolKind,
)

HOME = Path("/nonexistent/home")
Rules = dict[Behavior, list[str]]
USUAL: Rules = {"allow": ["Bash(git *)", "Bash(npm test)", "Bash(python *)", "Bash(echo *)", "Bash(make)"]}
GUARD: Rules = {"allow": ["Bash"], "deny": ["Bash(rm *)", "Bash(curl *)", "Read(.env)"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    for name in ("a.txt", ".env", "src/b.py"):
        (work / name).write_text("x\n")
    (work / "out").symlink_to(tmp_path)
    return work


def context(folder: Path, rules: Rules, mode: PermissionMode = PermissionMode.DEFAULT) -> PolicyContext:
    parsed: list[PermissionRule] = []
    for behavior, texts in rules.items():
        parsed += [rule for text in texts if (rule := parse_rule(text, behavior, "s", folder))]
    return PolicyContext(mode, tuple(parsed), (folder.resolve(),), None, MatchContext((folder,), HOME))


def bash(command: str, folder: Path) -> Call:
    facts = PermissionFacts(command=command, cwd=folder, input={"command": command})
    return Call("Bash", ToolKind.EXECUTE, False, facts)


def decided(command: str, ctx: PolicyContext, folder: Path) -> str:
    return type(decide(bash(command, folder), ctx)).__name__.lower()


@pytest.mark.spec("PM-4", "PM-2")
@pytest.mark.parametrize(
    ("command", "plain", "usual", "guard"),
    [
        # what only reads
        ("ls -la src", "allow", "allow", "allow"),
        ("cat a.txt | grep -n x | wc -l", "allow", "allow", "allow"),
        ("find . -name '*.py' -newer a.txt", "allow", "allow", "allow"),
        ("git log --oneline -5 && git diff HEAD", "allow", "allow", "allow"),
        ("sed -n '1,5p' a.txt; head -3 src/*.py", "allow", "allow", "allow"),
        ("LC_ALL=C sort a.txt", "allow", "allow", "allow"),
        ("timeout 5 cat a.txt 2>/dev/null", "allow", "allow", "allow"),
        ("cd src && ls", "allow", "allow", "allow"),
        # what reads elsewhere
        ("cat /etc/passwd", "ask", "ask", "allow"),
        ("cat out/secret", "ask", "ask", "allow"),
        ("cat ~/x", "ask", "ask", "allow"),
        ("grep -f/etc/shadow x a.txt", "ask", "ask", "allow"),
        ("cat < /etc/passwd", "ask", "ask", "allow"),
        ("cat $x", "ask", "ask", "ask"),
        ("find -L /etc -name x", "ask", "ask", "allow"),
        ("rg --files /etc", "ask", "ask", "ask"),
        ("wc --files0-from=list", "ask", "ask", "allow"),
        ('echo "$(</etc/passwd)"', "ask", "ask", "allow"),
        ("HOME=/etc; cat ~/passwd", "ask", "ask", "ask"),
        ("cd out && cat x", "ask", "ask", "allow"),
        ("cd src; cd ..; cat a.txt", "ask", "ask", "ask"),
        ("cat .env", "allow", "allow", "deny"),
        ("cat < .env", "allow", "allow", "deny"),
        ("cat .e''nv", "allow", "allow", "deny"),
        ("base64 .env", "ask", "ask", "deny"),
        ("grep -r key .", "allow", "allow", "ask"),
        # what may write or run something after all
        ("sort -o out.txt a.txt", "ask", "ask", "allow"),
        ("sort -uoout.txt a.txt", "ask", "ask", "allow"),
        ("sort --outp=x a.txt", "ask", "ask", "allow"),
        ("find . -delete", "ask", "ask", "allow"),
        ("find . -fprintf f x", "ask", "ask", "allow"),
        ("git diff --ext-diff", "ask", "ask", "ask"),
        ("git branch new", "ask", "allow", "allow"),
        ("git -c core.pager=x log", "ask", "ask", "allow"),
        ("git -C /elsewhere status", "ask", "ask", "allow"),
        ("git grep -Ovi x", "ask", "ask", "ask"),
        ("GIT_PAGER=x git log", "ask", "ask", "ask"),
        ("cd src && git status", "ask", "allow", "allow"),
        ("uniq a.txt b.txt", "ask", "ask", "allow"),
        ("date -s tomorrow", "ask", "ask", "allow"),
        ("rg --pre x y", "ask", "ask", "ask"),
        # a pattern may be several words
        ("uniq a*", "ask", "ask", "allow"),
        ("uniq a.{txt,out}", "ask", "ask", "allow"),
        ("grep src{,/../../../etc/passwd}", "ask", "ask", "allow"),
        ("grep a* src/b.py", "ask", "ask", "allow"),
        ("git diff src/../../../etc/passwd a.txt", "ask", "allow", "allow"),
        ("git diff src{,/../../../etc/passwd}", "ask", "allow", "allow"),
        ("git diff HEAD~1 -- src", "allow", "allow", "allow"),
        ("cat .{env,x}", "allow", "allow", "deny"),
        ("cat src/{b.py,c}", "allow", "allow", "allow"),
        ("cat {~,x}/y", "ask", "ask", "ask"),
        ("ls; cd src && cat ../.env", "ask", "ask", "ask"),
        ("git diff .env", "allow", "allow", "deny"),
        ("git show HEAD:.env", "allow", "allow", "deny"),
        ("git log @{u}..HEAD", "allow", "allow", "allow"),
        ("/bin/r[m] a.txt", "ask", "ask", "ask"),
        ("python /dev/stdin < a.txt", "ask", "ask", "allow"),
        ("ls $(rm a.txt)", "ask", "ask", "deny"),
        # rules
        ("npm test", "ask", "allow", "allow"),
        ("npm  'test'", "ask", "allow", "allow"),
        ("npm test x", "ask", "ask", "allow"),
        ("npm test; npm run x", "ask", "ask", "allow"),
        ("git push && make", "ask", "allow", "allow"),
        ("git push && makefile", "ask", "ask", "allow"),
        ("python x.py", "ask", "allow", "allow"),
        ("python -c 'print(1)'", "ask", "ask", "allow"),
        ("python -Sc x", "ask", "ask", "allow"),
        ("python", "ask", "ask", "allow"),
        ("python $x", "ask", "ask", "allow"),
        ("X=1 git push", "ask", "ask", "allow"),
        ("PATH=/x git push", "ask", "ask", "ask"),
        ("PATH=/x; git push", "ask", "ask", "ask"),
        ("for PATH in /x; do git push; done", "ask", "ask", "ask"),
        ("nice -n 5 git push", "ask", "allow", "allow"),
        ("nice --what git push", "ask", "ask", "allow"),
        ("/usr/bin/git push", "ask", "ask", "allow"),
        ("$g push", "ask", "ask", "ask"),
        ("{git,push}", "ask", "ask", "ask"),
        ("echo x > f", "ask", "ask", "allow"),
        ("git push > .git/hooks/x", "ask", "ask", "ask"),
        ("git config core.pager x", "ask", "ask", "allow"),
        # what is refused, however it is spelled
        ("rm a.txt", "ask", "ask", "deny"),
        ("git status && rm a.txt", "ask", "ask", "deny"),
        ("git status\nrm a.txt", "ask", "ask", "deny"),
        ("git status & rm a.txt", "ask", "ask", "deny"),
        ("echo `rm a.txt`", "ask", "ask", "deny"),
        ("cat <(rm a.txt)", "ask", "ask", "deny"),
        ("cat <<X\n$(rm a.txt)\nX", "ask", "ask", "deny"),
        ("f() { rm a.txt; }; f", "ask", "ask", "deny"),
        ("if true; then rm a.txt; fi", "ask", "ask", "deny"),
        ("X=1 rm a.txt", "ask", "ask", "deny"),
        ("/bin/rm a.txt", "ask", "ask", "deny"),
        ("\\rm a.txt", "ask", "ask", "deny"),
        ("r''m a.txt", "ask", "ask", "deny"),
        ("$'\\x72m' a.txt", "ask", "ask", "deny"),
        ("command rm a.txt", "ask", "ask", "deny"),
        ("env X=1 rm a.txt", "ask", "ask", "deny"),
        ("sudo -n rm a.txt", "ask", "ask", "deny"),
        ("bash -c 'true; rm a.txt'", "ask", "ask", "deny"),
        ("eval 'rm' a.txt", "ask", "ask", "deny"),
        ("find . -exec rm {} +", "ask", "ask", "deny"),
        ("ls | xargs rm", "ask", "ask", "deny"),
        ("timeout 9 rm a.txt", "ask", "ask", "deny"),
        ("$(echo rm) a.txt", "ask", "ask", "ask"),
        ("sudo -u root rm a.txt", "ask", "ask", "deny"),
        ("ls | xargs -I{} rm {}", "ask", "ask", "deny"),
        ("alias x='rm a.txt'", "ask", "ask", "deny"),
        ("alias x=rm", "ask", "ask", "deny"),
        ("git -c alias.x='!rm y' x", "ask", "ask", "ask"),
        ("bash <<'X'\nrm a.txt\nX", "ask", "ask", "ask"),
        ("echo 'rm a.txt' | sh -s", "ask", "ask", "ask"),
        ('git commit -m "$(cat a.txt)"', "ask", "ask", "allow"),
        ("find . -exec ls {} +", "ask", "ask", "allow"),
        # what cannot be taken apart
        ("echo 'x", "ask", "ask", "ask"),
        ("echo $(", "ask", "ask", "ask"),
        ("echo ${x:=y}", "ask", "ask", "ask"),
        ("echo x" + " y" * 6_000, "ask", "ask", "ask"),
        ("a\0b", "ask", "ask", "ask"),
        ("! ! rm a.txt", "ask", "ask", "ask"),
        ("'r'\\m a.txt", "ask", "ask", "ask"),
        ("r\\\nm a.txt", "ask", "ask", "ask"),
        ("ls ;; ls", "ask", "ask", "ask"),
        ("time ! rm a.txt", "ask", "ask", "ask"),
    ],
)
def test_b7_every_part_is_decided_on(folder: Path, command: str, plain: str, usual: str, guard: str) -> None:
    found = [decided(command, context(folder, rules), folder) for rules in ({}, USUAL, GUARD)]
    assert found == [plain, usual, guard]


@pytest.mark.spec("PM-4", "PM-1")
@pytest.mark.parametrize(
    ("command", "edits", "bypass", "plan", "never"),
    [
        ("ls", "allow", "allow", "allow", "allow"),
        ("make", "ask", "allow", "ask", "deny"),
        ("mkdir -p src/x && touch src/x/y", "allow", "allow", "ask", "deny"),
        ("echo x > src/new", "allow", "allow", "deny", "deny"),
        ("sed -i 's/a/b/g' a.txt", "allow", "allow", "ask", "deny"),
        ("sed -i 's/a/b/e' a.txt", "ask", "allow", "ask", "deny"),
        ("cp a.txt /elsewhere/x", "ask", "allow", "ask", "deny"),
        ("cp a.txt .git/config", "ask", "allow", "ask", "deny"),
        ("mv a.txt b.txt", "allow", "allow", "ask", "deny"),
        ("mv *.txt src", "ask", "allow", "ask", "deny"),
        ("rm -rf src", "allow", "allow", "ask", "deny"),
        ("rm -rf /", "ask", "ask", "ask", "deny"),
        ("rm -rf .", "ask", "ask", "ask", "deny"),
        ("rm -rf ..", "ask", "ask", "ask", "deny"),
        ("rm -rf ~", "ask", "ask", "ask", "deny"),
        ("rm -rf $DIR/", "ask", "ask", "ask", "deny"),
        ("sudo rm -rf /usr", "ask", "ask", "ask", "deny"),
        ("echo $(rm -rf /*)", "ask", "ask", "ask", "deny"),
        ("$x", "ask", "allow", "ask", "deny"),
    ],
)
def test_what_modes_free(folder: Path, command: str, edits: str, bypass: str, plan: str, never: str) -> None:
    modes = (PermissionMode.ACCEPT_EDITS, PermissionMode.BYPASS, PermissionMode.PLAN, PermissionMode.DONT_ASK)
    assert [decided(command, context(folder, {}, mode), folder) for mode in modes] == [edits, bypass, plan, never]


@pytest.mark.spec("PM-5", "PM-4")
@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("npm run build && npm test", ("Bash(npm run build)", "Bash(npm test)")),
        ("ls && make *.o", ("Bash(make \\*.o)",)),
        ("make 'a b' \"c\"", ("Bash(make 'a b' c)",)),
        ("make $TARGET", None),
        ("make > log", ("Bash(make)", "Edit(/{folder}/log)")),
        ("make; $x", None),
        ("a; b; c; d; e; f", None),
        ("rm -rf /", None),
        ("make \u202e x", None),
    ],
)
def test_what_an_answer_stores_frees_that_and_asks_no_more(
    folder: Path, command: str, rules: tuple[str, ...] | None
) -> None:
    ctx = context(folder, {})
    options = options_for(bash(command, folder), ctx, None)
    stored = next((option.rules for option in options if option.kind is OptionKind.ALLOW_SESSION), None)
    assert stored == (None if rules is None else tuple(rule.format(folder=folder) for rule in rules))
    if stored:
        later = context(folder, {"allow": list(stored)})
        assert isinstance(decide(bash(command, folder), later), Allow)
        assert not isinstance(decide(bash(f"{command} more", folder), later), Allow)


@pytest.mark.spec("PM-4")
def test_each_part_says_why(folder: Path) -> None:
    parts = explain_command(bash("git status && rm -rf src > log", folder), context(folder, GUARD))
    assert [(part.text, type(part.decision).__name__) for part in parts] == [
        ("git status", "Allow"),
        ("rm -rf src", "Deny"),
        ("> log", "Allow"),
    ]
    assert parts[1].decision.reason == "denied by the rule Bash(rm *) in s"


@pytest.mark.spec("PM-6")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("echo hi", "echo hi"),
        ("a\u202eb", "a\\u{202e}b"),
        ("a\tb", "a\\u{9}b"),
        ("a\u00a0b\u200bc", "a\\u{a0}b\\u{200b}c"),
        ("x" + " " * 500 + "y", "x \\u{20}×500 y"),
        ("a\nb", "a\nb"),
        ("\ue000\U000e0041\u3164", "\\u{e000}\\u{e0041}\\u{3164}"),
    ],
)
def test_a16_what_hides_is_written_out(text: str, shown: str) -> None:
    assert (visible(text), hides(text)) == (shown, shown != text)


DESKTOP: Rules = {"allow": ["Bash"], "deny": ["Read(~/Desktop/**)"]}


@pytest.mark.spec("PM-4", "PM-2")
@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("cat ~/Desktop/x", "deny"),
        ('cat ~/"Desktop"/x', "deny"),
        ("cat $HOME/Desktop/x", "deny"),
        ('cat "${HOME}/Desktop/x"', "deny"),
        ("head -n1 ${HOME}/'Desktop'/x", "deny"),
        ("cat < $HOME/Desktop/x", "deny"),
        ("cp $HOME/Desktop/x a.txt", "deny"),
        ("echo x > $HOME/Desktop/x", "deny"),
        ('cat "$PWD/../../../../../../../../../$HOME/Desktop/x"', "deny"),
        ("cd ~/Desktop && cat x", "deny"),
        ("cd $HOME && cat Desktop/x", "deny"),
        ('cd "$HOME/Desktop" && cat $PWD/x', "deny"),
        ("cp -r ~/Desktop made", "deny"),
        ("mv $HOME/Desktop made", "deny"),
        ("ln -s ~/Desktop made", "deny"),
        ("cat $HOME/{Desktop,x}/y", "deny"),
        ("wc -l ~/Desktop/*", "deny"),
        ("cat $HOME/Downloads/x", "allow"),
        ("cat '$HOME/Desktop/x'", "allow"),
        ('cat "\\$HOME/Desktop/x"', "allow"),
    ],
)
def test_b12_a_denied_folder_is_denied_in_every_spelling(folder: Path, command: str, decision: str) -> None:
    assert decided(command, context(folder, DESKTOP), folder) == decision


@pytest.mark.spec("PM-4")
@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ('cat "$PWD/a.txt"', "allow"),
        ("ls ${PWD}/src", "allow"),
        ("cat $PWD/../x", "ask"),
        ("cat $HOME/x", "ask"),
        ("cat $OLDPWD/x", "ask"),
        ("export PWD=/etc; cat $PWD/passwd", "ask"),
        ("read P''WD < a.txt; cat $PWD/passwd", "ask"),
        ("cd src; cd ..; cat $PWD/a.txt", "ask"),
    ],
)
def test_b12_a_variable_is_known_until_something_sets_it(folder: Path, command: str, decision: str) -> None:
    assert decided(command, context(folder, {}), folder) == decision


@pytest.mark.spec("PM-4")
@pytest.mark.parametrize("command", ["rm -rf $HOME", 'rm -r "${PWD}"', "sudo rm -rf $PWD/..", "ls(){ ls|ls& };ls"])
def test_what_harms_in_itself_asks(folder: Path, command: str) -> None:
    mode = PermissionMode.DEFAULT if "ls" in command else PermissionMode.BYPASS
    assert decided(command, context(folder, {}, mode), folder) == "ask"


@pytest.mark.spec("PM-4", "PM-2")
@pytest.mark.parametrize(
    ("command", "guard"),
    [
        ("/bin/r[m] a.txt", "ask"),
        ("cp -a . x", "ask"),
        ("mv src y", "ask"),
        ("ln -s src y", "ask"),
        ("tar cf x .", "ask"),
        ("cp a.txt src", "allow"),
        ("mv a.txt b.txt", "allow"),
        ("tar cf x a.txt", "allow"),
        ("git show HEAD:.env", "deny"),
        ("git diff .env", "deny"),
        ("git blame -L 1,2 .env", "deny"),
        ("git cat-file -p HEAD:.env", "deny"),
        ("git show HEAD:a.txt", "allow"),
        ("git diff main..HEAD -- a.txt", "allow"),
    ],
)
def test_b12_what_a_rule_hides_is_not_reached_in_another_way(folder: Path, command: str, guard: str) -> None:
    assert decided(command, context(folder, GUARD), folder) == guard


@pytest.mark.spec("PM-4")
@pytest.mark.parametrize(
    ("command", "usual"),
    [
        ("python /dev/stdin < a.txt", "ask"),
        ("python /proc/self/fd/0 < a.txt", "ask"),
        ("python a.py < a.txt", "allow"),
        ("git tag -l 'v*'", "allow"),
        ("git branch --list 'f*'", "allow"),
        ("git remote get-url origin", "allow"),
    ],
)
def test_programs_that_come_in_and_lists_of_git(folder: Path, command: str, usual: str) -> None:
    assert decided(command, context(folder, USUAL), folder) == usual
    plain = "allow" if command.startswith("git") else "ask"
    assert decided(command, context(folder, {}), folder) == plain
