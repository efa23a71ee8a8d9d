"""Permissions: one decision for each call, and the way of an ask to a person and back.

    types                       modes, rules, facts about a call, the ask, the answer, the decision
    rules path_rules gitignore  what a rule says of a call; its path pattern; the pattern as git reads it
    rule_faults                 what is wrong with a rule, in words
    guarded                     paths that only a person frees
    policy                      mode, rules and facts to Allow, Deny or Ask, for calls that are one thing
    shell/                      the same for shell commands, part by part
    decision                    the entry point: `decide` for any call
    modes                       the mode of a launched and of a resumed agent, and what managed policy leaves of one
    explaining                  the same decision rule by rule, for `agent-ls permissions`
    options grants rule_writing what an answer offers, keeps for the session, and writes into a settings file
    broker gate                 asks to whoever can answer; the one pipeline of every call

Deliberately absent: where rules come from (`loading/`), and any second way to a decision. To add a kind of rule, touch
`rules.judge` and `rule_faults`; what it needs to know of a call is a field of `PermissionFacts`.
"""
