"""The runtime of sub-agents. It has never heard of LSP; an editor is one consumer of `runtime.Runtime`.

Layers, each importing only from those before it (tests/test_architecture.py):

    values    ids messages events definitions tool task errors ports permissions/types
    pure      state turn event_log settings, model/{accumulate,prompt,aliases}, permissions/{rules,policy,options},
              transcript/{codec,repair,readable}, tool_pool tool_input, guidance/,
              result_limits text_file text_form line_diff merge review review_parts
    adapters  model/messages_api (the anthropic SDK), transcript/{writer,index,reading}, permissions/grants, loading/,
              tools/, disk processes clock, repository git_objects worktree* snapshot* applying disk_target
    engine    slots project engine agent agent_listing spawning tool_runner query_loop subagents reviews,
              permissions/{broker,gate}
    façade    runtime

One append-only `EventLog` per agent; its state is a fold (`state.apply`); transcript, progress and replay read the
same log. `query_loop` reads as prose: ask `turn.next_step`, do it, record it. A permission is a value with one decision
(`policy.decide`); an ask goes to whoever is attached (`broker`). The prompt is a sequence of frozen fragments.

Deliberately absent: connections and editors, any global or ambient agent, agents that launch agents, forks, hooks, MCP
servers and compaction (they come with later parts), and a shell parser: commands ask unless a rule names them exactly.

To add a tool: `tools/NAME.py` and a row in `tools/builtin.py`. An event: a class in `events.py`, then follow the type
checker through `state`, `transcript/readable` and the server's `convert`. A permission mode: `permissions/policy.py`.
"""
