"""May a shell command run? Each of its parts is decided on, and the strictest decision is that of the whole (PM-4).

The order for a part is that of every call: deny, ask, mode, allow, ask. What a part reads and writes is decided on by
the rules for files, and so is every redirection. An allow rule frees a part from asks about the files that it names,
but not about those that decide what later commands do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import evolve, frozen

from agent_core.permissions.guarded import critical, guarded
from agent_core.permissions.path_rules import specifier_of
from agent_core.permissions.policy import Call, PolicyContext, decide
from agent_core.permissions.rules import Subject, judge, parameter
from agent_core.permissions.shell.files import Where, candidates, certain, paths_of, resolved
from agent_core.permissions.shell.hiding import denied, may_show
from agent_core.permissions.shell.launching import runs_unseen
from agent_core.permissions.shell.matching import allows, dangerous, escaped, harmless, restricts, spelling, spellings
from agent_core.permissions.shell.parse import Redirect, Script, SimpleCommand, changes_folder, parse
from agent_core.permissions.shell.reading import reads
from agent_core.permissions.shell.visible import hides, visible
from agent_core.permissions.shell.words import Word
from agent_core.permissions.shell.wrappers import unwrapped
from agent_core.permissions.shell.writing import changes, removed
from agent_core.permissions.types import (
    Allow,
    Ask,
    Deny,
    Match,
    PermissionDecision,
    PermissionFacts,
    PermissionMode,
    PermissionRule,
    ToolKind,
)

_SAYS_NOTHING = Ask("no rule allows this command")


@frozen
class Part:
    """One simple command, or one redirection, and what was decided on it. `rule`: the text of one that would allow it
    and nothing else; None where there is none."""

    text: str
    decision: PermissionDecision
    rule: str | None = None


@frozen
class _Rules:
    """Of a call. `whole`: an allow for all of it, by the bare name or by the exact text."""

    restricting: tuple[PermissionRule, ...]
    allowing: tuple[PermissionRule, ...]
    whole: PermissionRule | None


def decide_command(call: Call, ctx: PolicyContext) -> PermissionDecision:
    parts = explain_command(call, ctx)
    for kind in (Deny, Ask):
        for part in parts:
            if isinstance(part.decision, kind):
                return _named(part, len(parts))
    return parts[0].decision


def explain_command(call: Call, ctx: PolicyContext) -> tuple[Part, ...]:
    """Each part with its decision, in the order in which they stand; at least one."""
    command = call.facts.command or ""
    plain = evolve(ctx, mode=PermissionMode.DEFAULT) if ctx.mode is PermissionMode.DONT_ASK else ctx
    parts = _explain(call, command, plain)
    if ctx.mode is not PermissionMode.DONT_ASK:
        return parts
    return tuple(evolve(part, decision=_never_asked(part.decision)) for part in parts)


def _explain(call: Call, command: str, ctx: PolicyContext) -> tuple[Part, ...]:
    text, rules = visible(command), _rules(command, ctx)
    if (decided := _by_call(call, ctx)) is not None:
        return (Part(text, decided),)
    script = parse(command)
    if script.problem is not None:
        return (Part(text, _not_understood(script.problem, rules)),)
    parts = tuple(_parts(script, _start(command, script, call, ctx), ctx, rules))
    if script.hidden is not None:
        parts = (*parts, Part(text, _not_understood(script.hidden, rules)))
    return parts or (Part(text, Allow("mode", "it runs nothing")),)


def _by_call(call: Call, ctx: PolicyContext) -> PermissionDecision | None:
    """By restrictions that speak of the call as such: its bare name, or a parameter."""
    subject = Subject(call.tool, call.facts, call.agent_name, ctx.matching)
    found = [
        (rule, judge(rule, subject))
        for rule in ctx.rules
        if rule.behavior != "allow" and (_is_bare(rule) or (rule.tool == "Bash" and parameter(rule, "Bash")))
    ]
    for behavior in ("deny", "ask"):
        for rule, match in found:
            if rule.behavior == behavior and match is Match.YES:
                return _by_rule(rule, "deny" if behavior == "deny" else "ask")
    unclear = next((rule for rule, match in found if match is Match.UNCLEAR), None)
    return Ask(f"the rule {unclear.text} in {unclear.place} may speak of this") if unclear else None


def _is_bare(rule: PermissionRule) -> bool:
    return rule.specifier is None and (rule.tool == "Bash" or "*" in rule.tool)


def _rules(command: str, ctx: PolicyContext) -> _Rules:
    own = [rule for rule in ctx.rules if rule.tool == "Bash" and not parameter(rule, "Bash")]
    named = [rule for rule in own if rule.specifier is not None]
    allowing = tuple(rule for rule in named if rule.behavior == "allow")
    bare = [rule for rule in own if rule.specifier is None and rule.behavior == "allow"]
    exact = [rule for rule in allowing if (rule.specifier or "").strip() in (command.strip(), escaped(command.strip()))]
    whole = next(iter([*bare, *exact]), None)
    return _Rules(tuple(rule for rule in named if rule.behavior != "allow"), allowing, whole)


def _not_understood(problem: str, rules: _Rules) -> PermissionDecision:
    if rules.whole is not None and not rules.restricting:
        return _by_rule(rules.whole, "allow")
    return Ask(f"the command cannot be taken apart, so that nobody knows what it runs: {problem}")


def _start(text: str, script: Script, call: Call, ctx: PolicyContext) -> Where:
    return Where(call.facts.cwd or Path("/"), ctx.matching.home, certain(text, script))


def _parts(script: Script, start: Where, ctx: PolicyContext, rules: _Rules) -> Iterator[Part]:
    moves = [command for command in script.commands if changes_folder(command)]
    after = evolve(start, cwd=_after(script, start)) if moves else start
    maybe = () if after.cwd is not None else tuple(_folders(moves, start))
    for command in script.commands:
        where = start if moves[:1] == [command] else after
        part = _part(command, where, start, ctx, rules, moved=bool(moves))
        yield _unless(part, (_files(command, each, ctx, moved=True) for each in maybe))
    for redirect in script.redirects:
        if redirect.target is not None:
            part = _redirection(redirect, redirect.target, after, ctx, rules)
            yield _unless(part, (_redirection(redirect, redirect.target, each, ctx, rules).decision for each in maybe))


def _folders(moves: list[SimpleCommand], start: Where) -> Iterator[Where]:
    """Where a command may run when nobody can follow each `cd`."""
    yield start
    for command in moves:
        for word in command.words[1:]:
            yield from (evolve(start, cwd=path) for path in paths_of(word, start) or ())


def _unless(part: Part, elsewhere: Iterable[PermissionDecision | None]) -> Part:
    """What would be denied in a folder where it may run is not free."""
    if not isinstance(part.decision, Allow):
        return part
    denied = next((each for each in elsewhere if isinstance(each, Deny)), None)
    return evolve(part, decision=Ask(f"in one of the folders it would be {denied.reason}")) if denied else part


def _after(script: Script, start: Where) -> Path | None:
    if script.goes_to is not None and re.search(r"[^./][^/]*/+\.\.(/|$)", script.goes_to.text or ""):
        return None  # bash takes `link/..` away as text
    found = paths_of(script.goes_to, start) if script.goes_to else None
    return found[0] if found and script.goes_to and not script.goes_to.pattern else None


def _part(
    command: SimpleCommand, where: Where, start: Where, ctx: PolicyContext, rules: _Rules, *, moved: bool
) -> Part:
    decision = _decided(command, where, start, ctx, rules, moved=moved)
    rule = None
    if isinstance(decision, Ask) and command.program is not None and not hides(command.source):
        text = f"Bash({escaped(spelling(command))})"
        fixed = not runs_unseen(command) and all(word.text is not None for word in command.words)
        rule = text if fixed and not hides(text) and allows(escaped(spelling(command)), command) else None
    return Part(visible(command.source or spelling(command)), decision, rule)


def _decided(
    command: SimpleCommand, where: Where, start: Where, ctx: PolicyContext, rules: _Rules, *, moved: bool
) -> PermissionDecision:
    hits = [(rule, restricts(rule.specifier or "", command)) for rule in rules.restricting]
    if rule := _first(hits, "deny", Match.YES):
        return _by_rule(rule, "deny")
    known = evolve(command, words=tuple(resolved(word, where) for word in command.words))
    files = _files(known, where, ctx, moved=moved)
    if isinstance(files, Deny):
        return files
    if rule := _first(hits, "ask", Match.YES) or _first(hits, "ask", Match.UNCLEAR):
        return _by_rule(rule, "ask")
    if rule := _first(hits, "deny", Match.UNCLEAR):
        return Ask(f"the deny rule {rule.text} in {rule.place} may speak of this")
    if isinstance(unclear := denied(unwrapped(_without_harmless(known)), where, ctx), Ask):
        return unclear
    if reason := may_show(unwrapped(known), where, ctx):
        return Ask(reason)
    if rules.restricting and (name := next((each.name for each in command.assignments if dangerous(each.name)), None)):
        return Ask(f"the variable {name} decides what runs, and there are rules that deny or ask")
    if reason := _critical(known, where, start, ctx):
        return Ask(reason)
    if ctx.mode is PermissionMode.BYPASS:
        return Allow("mode", "the mode bypassPermissions allows everything that no rule denies")
    if isinstance(files, Allow):
        return files
    return _by_allow(command, where, files, rules)


def _by_allow(
    command: SimpleCommand, where: Where, files: PermissionDecision | None, rules: _Rules
) -> PermissionDecision:
    rule = rules.whole or next((each for each in rules.allowing if allows(each.specifier or "", command)), None)
    if rule is None:
        return files or _SAYS_NOTHING
    change = changes(unwrapped(_without_harmless(command)))
    written = [path for word in (change.writes if change else ()) for path in paths_of(word, where) or ()]
    if first := next((path for path in written if guarded(path)), None):
        return Ask(f"{first} can change what later commands do, so a person decides")
    return _by_rule(rule, "allow")


def _files(command: SimpleCommand, where: Where, ctx: PolicyContext, *, moved: bool) -> PermissionDecision | None:
    """By the files that are read and written; None when that does not say what the command does."""
    if not command.words:
        return _assigned(command)
    plain = unwrapped(_without_harmless(command))
    if isinstance(refused := denied(plain, where, ctx), Deny):
        return refused
    if (named := reads(plain)) is not None:
        if moved and plain.program == "git":
            return Ask("git in another folder may run what the settings of that folder say")
        return _read(candidates(named), where, ctx)
    change = changes(plain)
    if change is None:
        return None
    return _strictest([_written(change.writes, where, ctx), _read(change.reads, where, ctx)])


def _assigned(command: SimpleCommand) -> PermissionDecision:
    for each in command.assignments:
        if dangerous(each.name):
            return Ask(f"the variable {each.name} decides what later commands do")
    return Allow("mode", "it sets a variable of the command")


def _without_harmless(command: SimpleCommand) -> SimpleCommand:
    kept = tuple(each for each in command.assignments if not harmless(each))
    return evolve(command, assignments=kept)


def _read(words: Iterable[Word], where: Where, ctx: PolicyContext) -> PermissionDecision:
    paths = _paths(words, where)
    if paths is None:
        return Ask("which files it reads cannot be known")
    if not paths:
        return Allow("mode", "it only reads")
    return decide(Call("Read", ToolKind.READ, True, PermissionFacts(reads=paths)), ctx)


def _written(words: Iterable[Word], where: Where, ctx: PolicyContext) -> PermissionDecision:
    """What rules allow the editing tools they do not allow a command, but a mode may."""
    paths = _paths(words, where)
    if paths is None:
        return Ask("which files it changes cannot be known")
    if not paths:
        return Allow("mode", "it changes no file")
    decided = decide(Call("Write", ToolKind.EDIT, False, PermissionFacts(writes=paths)), ctx)
    if isinstance(decided, Deny) and decided.decided_by == "mode":
        return Ask("the mode plan is for reading, and this command changes files")
    by_rule = isinstance(decided, Allow) and decided.decided_by == "rule"
    return _SAYS_NOTHING if by_rule or (isinstance(decided, Ask) and _is_usual(paths, ctx)) else decided


def _is_usual(paths: tuple[Path, ...], ctx: PolicyContext) -> bool:
    inside = all(any(path.resolve().is_relative_to(folder) for folder in ctx.working_dirs) for path in paths)
    return inside and not any(map(guarded, paths))


def _paths(words: Iterable[Word], where: Where) -> tuple[Path, ...] | None:
    found: list[Path] = []
    for word in words:
        paths = paths_of(word, where)
        if paths is None:
            return None
        found.extend(paths)
    return tuple(dict.fromkeys(found))


def _redirection(redirect: Redirect, target: Word, where: Where, ctx: PolicyContext, rules: _Rules) -> Part:
    text = visible(f"{redirect.operator} {target.source}")
    paths = paths_of(target, where) if not target.pattern else None
    if paths is None:
        unknown = Ask("where it is redirected to cannot be known")
        return Part(text, unknown if rules.whole is None else _by_rule(rules.whole, "allow"))
    if not paths:
        return Part(text, Allow("mode", "it changes no file"))
    facts = PermissionFacts(writes=paths) if redirect.writes else PermissionFacts(reads=paths)
    kind = ToolKind.EDIT if redirect.writes else ToolKind.READ
    decided = decide(Call("Write" if redirect.writes else "Read", kind, not redirect.writes, facts), ctx)
    if isinstance(decided, Ask) and rules.whole is not None and not any(map(guarded, facts.writes)):
        decided = _by_rule(rules.whole, "allow")
    specifier = specifier_of(paths[0])
    rule = f"{'Edit' if redirect.writes else 'Read'}({specifier})"
    storable = specifier is not None and isinstance(decided, Ask) and not hides(rule)
    return Part(text, decided, rule if storable else None)


def _critical(command: SimpleCommand, where: Where, start: Where, ctx: PolicyContext) -> str | None:
    """Removing what the machine, the user or the project cannot do without is asked for in every mode."""
    near = evolve(where, cwd=where.cwd or start.cwd)
    cwd = start.cwd or Path("/")
    for each, _ in spellings(command):
        for word in removed(each) or ():
            if re.match(r'"?\$\{?\w+[^/]*/?(\*.*)?"?$', word.source) and word.source.rstrip('"').endswith(("/", "*")):
                return f"{visible(word.source)} removes everything when the variable is empty"
            if any(critical(path, cwd, ctx.matching.home, ctx.working_dirs) for path in _removed_paths(word, near)):
                return f"{visible(word.source)} is, or holds, a folder that must not be removed unasked"
    return None


def _removed_paths(word: Word, where: Where) -> tuple[Path, ...]:
    """Of a pattern that takes everything in a folder the folder itself."""
    paths = paths_of(word, where) or ()
    if not word.pattern:
        return paths
    last = (word.text or "").rpartition("/")[2]
    return paths if last.strip("*.{,}") == "" else paths[1:]


def _first(hits: list[tuple[PermissionRule, Match]], behavior: str, how: Match) -> PermissionRule | None:
    return next((rule for rule, found in hits if rule.behavior == behavior and found is how), None)


def _strictest(decisions: list[PermissionDecision]) -> PermissionDecision:
    for kind in (Deny, Ask):
        for each in decisions:
            if isinstance(each, kind):
                return each
    return decisions[0]


def _by_rule(rule: PermissionRule, behavior: str) -> PermissionDecision:
    if behavior == "deny":
        return Deny("rule", f"denied by the rule {rule.text} in {rule.place}")
    if behavior == "allow":
        return Allow("rule", f"allowed by the rule {rule.text} in {rule.place}")
    return Ask(f"the rule {rule.text} in {rule.place} asks")


def _never_asked(decision: PermissionDecision) -> PermissionDecision:
    if not isinstance(decision, Ask):
        return decision
    return Deny("mode", f"the mode dontAsk never asks, and {decision.reason}", decision.nearest)


def _named(part: Part, count: int) -> PermissionDecision:
    """With the part that it is about, where there are several."""
    if count == 1:
        return part.decision
    shown = part.text if len(part.text) <= 80 else part.text[:79] + "…"
    return evolve(part.decision, reason=f"{shown}: {part.decision.reason}")
