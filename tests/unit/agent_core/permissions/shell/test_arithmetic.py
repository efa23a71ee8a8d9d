"""Texts that bash runs as commands: real bash shows that it does, and none of them is free."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from agent_core.permissions.shell.parse import parse


def found(command: str) -> str | None:
    script = parse(command)
    return script.problem or script.hidden


BASH = shutil.which("bash") or "bash"


@pytest.mark.spec("PM-4")
@pytest.mark.parametrize(
    "command",
    [
        "[[ 'a[$(touch made)]' -lt 3 ]]",
        "test -v 'a[$(touch made)]'",
        "[ -v 'a[$(touch made)]' ]",
        "for x in 'a[$(touch made)]'; do echo $((x + 2)); done",
        "x='a[$(touch made)]'; (( x > 1 ))",
        "x='a[`touch made`]'; [[ $x -eq 1 ]]",
        "x='a[$(touch made)]'; [[ x -gt 1 ]]",
        "x='a[$(touch made)]'; y=abc; echo ${y:x}",
        "x='a[$(touch made)]'; for ((i=x;i<0;i++)); do ls; done",
        "x='a[$(touch made)]'; y=x; echo $((y + 1))",
        "x='b[$(touch made)]'; a=(1 2); echo \"${a[x]}\"",
        "x=$'b\\x5b$(touch made)]'; echo $((x))",
        "x=a; x+='[$(touch made)]'; echo $((x))",
        "x=$(printf '%s' 'a[$' '(touch made)]'); echo $((x))",
        ": 'a[$(touch made)]'; echo $(($_))",
        "set -- 'a[$(touch made)]'; echo $(($1))",
        "f() { echo $(($1)); }; f 'a[$(touch made)]'",
        "read x <<< 'a[$(touch made)]'; echo $((x))",
        "[[ 'a[$(touch made)]' =~ .* ]]; echo $((BASH_REMATCH))",
        "declare -i y; y='a[$(touch made)]'",
        "declare 'a[$(touch made)]=1'",
        "printf -v 'a[$(touch made)]' x",
        "let 'a[$(touch made)]'",
        "x='a[$(touch made)]'; a[x]=1",
        "echo 'a[$(touch made)]' > f; echo $(($(cat f)))",
        "echo 'a[$(touch made)]' > f; x=abc; echo ${x:$(cat f)}",
        "echo 'a[$(touch made)]' > f; a[$(cat f)]=1",
    ],
)
def test_b7_what_a_calculation_runs_is_not_taken_for_a_text(tmp_path: Path, command: str) -> None:
    subprocess.run([BASH, "-c", command], cwd=tmp_path, timeout=20, capture_output=True, check=False)
    assert (tmp_path / "made").exists(), "bash runs no command in it"
    assert found(command) is not None


@pytest.mark.spec("PM-4")
@pytest.mark.parametrize(
    "command",
    [
        "echo $((1 + 2)) $((COLUMNS / 2))",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
        "x=5; [[ $x -gt 3 ]] && echo yes",
        'n=$(ls | wc -l); [ "$n" -gt 3 ]',
        'n=$(ls | wc -l); [[ "$n" == "3" ]]',
        "echo ${x:-none} ${x:0:3}",
        "for ((i=0;i<3;i++)); do echo $i; done",
        'for f in *.txt; do echo "${f:0:2}"; done',
        "a=(1 2 3); echo ${a[0]} ${a[@]}",
        "printf '[%s]\\n' \"$(pwd)\"",
        "export X=1; unset X",
    ],
)
def test_calculations_with_numbers_stay_free(command: str) -> None:
    assert found(command) is None
