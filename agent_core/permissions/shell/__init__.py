"""Shell commands in permissions (PM-4): what would run, and whether all of it may.

    parse.py      a command text to every simple command in it, with its words and redirections
    arithmetic.py where bash runs what stands in a mere text
    words.py      one word: what it says once bash has removed the quotes, or that nobody can know
    hiding.py     files that deny rules hide, and commands that would show them in other ways
    matching.py   Bash(...) rules against one simple command
    launching.py  commands that run what is given to them: shells, interpreters, sudo, xargs, find -exec, git -c
    wrappers.py   timeout, nice and the like, which change nothing of what they run
    reading.py    the commands that only read, with the files that they read
    writing.py    mkdir, touch, rm, mv, cp: the files that they write
    deciding.py   the decision on each part, and on the whole
    visible.py    text in which nothing hides

Absent: an evaluation of variables. What an expansion decides is unknown, and what is unknown is asked for.
To add a command that only reads: `reading.py`. To add one that runs others: `launching.py`.
"""
