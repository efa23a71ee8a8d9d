"""The runtime of sub-agents. It has never heard of LSP; an editor is one consumer of `runtime.Runtime`.

Layers, each importing only from those before it (tests/test_architecture.py):

    values    ids messages events definitions tool task errors ports permissions/types
    pure      state turn event_log settings background conversations task_items, tool_pool tool_input, guidance/,
              model/{accumulate,prompt,aliases,prices}, permissions/ (all but the
              below), json_places,
              transcript/{codec,repair,readable}, result_limits text text_file text_form line_diff merge review
              review_parts review_plans
    adapters  model/messages_api (the anthropic SDK), transcript/{writer,index,reading}, permissions/grants, loading/,
              tools/, disk processes clock task_list, repository git_objects worktree* snapshot* applying restoring
              recovery decisions disk_target checkouts checkout_tree bases finishing furnishing
    engine    slots stagger budget project engine agent agent_listing, permissions/{broker,gate}, reviews
                spawning forking reviving   a new agent: from a definition, from a conversation, from a transcript
                launching messenger         what an agent does with others: launch and wait, talk and stop
                subagents isolation hooked_isolation   one run from its queue to its end; the worktree around it
                query_loop tool_runner progress_summary handoff
    façade    runtime

One append-only `EventLog` per agent; its state is a fold (`state.apply`); transcript, progress and replay read the
same log. `query_loop` reads as prose: ask `turn.next_step`, do it, record it. A permission is a value with one decision
(`policy.decide`); an ask goes to whoever is attached (`broker`). The prompt is a sequence of frozen fragments.

Foreground is who waits, not where the work runs: every run lives in the runtime's task group (`subagents.run`), and a
parent only awaits it (`launching.answer_of`). The prompt of a fork shares its parent's fragments (`forking`).

Deliberately absent: connections and editors, any global or ambient agent, MCP servers, teams, skills (they come with
later parts), and summaries by a model in place of a conversation.

To add a tool: `tools/NAME.py` and a row in `tools/builtin.py`. An event: a class in `events.py`, then follow the type
checker through `state`, `transcript/readable` and the server's `convert`. A permission mode: `permissions/policy.py`.
"""
