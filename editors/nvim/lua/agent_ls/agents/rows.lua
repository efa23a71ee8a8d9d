--- What the list of agents shows: one line for each agent, two where it is narrow.
local M = {}

local agents = require("agent_ls.agents")
local client = require("agent_ls.client")
local ui = require("agent_ls.ui")

local MARKS = {
  pending = "·",
  running = "▶",
  waiting = "▶",
  completed = "✓",
  failed = "✗",
  stopped = "■",
  interrupted = "■",
}
local COLOURS = {
  pending = "AgentLsDim",
  running = "AgentLsRunning",
  waiting = "AgentLsRunning",
  completed = "AgentLsDone",
  failed = "AgentLsFailed",
  stopped = "AgentLsDim",
  interrupted = "AgentLsDim",
}
local WIDE = 90

local function tree_prefix(row)
  if row.level == 0 then
    return ""
  end
  local parts = {}
  for level = 2, row.level do
    table.insert(parts, row.last[level] and "  " or "│ ")
  end
  table.insert(parts, row.last[row.level + 1] and "└ " or "├ ")
  return table.concat(parts)
end

local function elapsed(info)
  local start = ui.epoch(info.startedAt)
  if not start then
    return ""
  end
  local stop = not agents.is_live(info) and ui.epoch(info.endedAt)
  return ui.duration((stop or os.time()) - start)
end

local function tokens(usage)
  return ui.count(usage.inputTokens + usage.cacheReadTokens + usage.cacheCreationTokens + usage.outputTokens)
end

local function cache_share(usage)
  local input = usage.inputTokens + usage.cacheReadTokens + usage.cacheCreationTokens
  return input > 0 and ("%d%%"):format(math.floor(100 * usage.cacheReadTokens / input + 0.5)) or ""
end

local function current_work(agent)
  if agent.summary then
    return ui.visible(agent.summary)
  end
  local id = agent.order[#agent.order]
  if not id then
    return ""
  end
  local more = #agent.order > 1 and ("%d calls, "):format(#agent.order) or ""
  return more .. ui.visible(agent.tools[id])
end

local function state_word(agent)
  local info = agent.info
  if next(agent.asks) or info.pendingPermissions > 0 and info.status == "waiting" then
    return "NEEDS YOU", "AgentLsNeedsYou"
  end
  if info.status == "pending" and agent.queue then
    return "queued " .. agent.queue, COLOURS.pending
  end
  if info.status == "completed" and agents.is_reviewable(info) then
    return "to review", "AgentLsKey"
  end
  if info.status == "running" and agents.is_background(info) then
    return "background", COLOURS.running
  end
  return agents.word(info), COLOURS[info.status]
end

---@class agent_ls.Line
---@field text string
---@field id? string
---@field spans {[1]: integer, [2]: integer, [3]: string}[] byte ranges and their highlight

--- Pieces of {text, highlight} as one line.
local function line_of(pieces, id)
  local text, spans = "", {}
  for _, piece in ipairs(pieces) do
    if piece[2] then
      table.insert(spans, { #text, #text + #piece[1], piece[2] })
    end
    text = text .. piece[1]
  end
  return { text = text, id = id, spans = spans }
end

local STATE, TYPE, TIME, TOKENS, CACHE = 11, 16, 6, 7, 6

local function wide_columns(width)
  local rest = width - STATE - TYPE - TIME - TOKENS - CACHE - 6
  local tool = math.floor(rest * 0.45)
  return rest - tool, tool
end

local function wide_line(row, width)
  local info = row.agent.info
  local title_width, tool_width = wide_columns(width)
  local prefix = tree_prefix(row)
  local mark = MARKS[info.status] .. " "
  local word, colour = state_word(row.agent)
  local title = ui.pad(prefix .. mark .. agents.title(info), title_width)
  return line_of({
    { title .. " " },
    { ui.pad(word, STATE) .. " ", colour },
    { ui.pad(info.agentType, TYPE) .. " ", "AgentLsDim" },
    { ui.pad(current_work(row.agent), tool_width) .. " " },
    {
      ("%" .. TIME .. "s %" .. TOKENS .. "s %" .. CACHE .. "s"):format(
        elapsed(info),
        tokens(info.usage),
        cache_share(info.usage)
      ),
      "AgentLsDim",
    },
  }, info.id)
end

local function narrow_lines(row, width)
  local info = row.agent.info
  local word, colour = state_word(row.agent)
  local room = width - vim.fn.strdisplaywidth(word) - 1
  local title = ui.pad(tree_prefix(row) .. MARKS[info.status] .. " " .. agents.title(info), room)
  local share = cache_share(info.usage)
  local facts = { elapsed(info), tokens(info.usage), share ~= "" and share .. " cached" or "", info.agentType }
  local tool = current_work(row.agent)
  if tool ~= "" then
    table.insert(facts, tool)
  end
  local text = table.concat(
    vim.tbl_filter(function(fact)
      return fact ~= ""
    end, facts),
    " · "
  )
  local indent = ("  "):rep(row.level + 1)
  return line_of({ { title .. " " }, { word, colour } }, info.id),
    line_of({ { ui.truncate(indent .. text, width), "AgentLsDim" } }, info.id)
end

local function heading(width)
  if width < WIDE then
    return line_of({ { "Agents", "AgentLsTitle" } })
  end
  local title_width, tool_width = wide_columns(width)
  local cells =
    { ui.pad("Agent", title_width), ui.pad("State", STATE), ui.pad("Type", TYPE), ui.pad("Doing", tool_width) }
  local numbers = ("%" .. TIME .. "s %" .. TOKENS .. "s %" .. CACHE .. "s"):format("Time", "Tokens", "Cached")
  return line_of({ { table.concat(cells, " ") .. " " .. numbers, "AgentLsTitle" } })
end

--- Whether changes can be reviewed here, so that nobody waits for a diff that never comes.
local function review_state()
  if client.last_fault then
    return client.last_fault
  end
  if not client.running() then
    return "The agent server is starting"
  end
  return client.offers("review") and "" or "Review in the editor: off (this server does not offer agent/review)"
end

--- The whole list.
---@return agent_ls.Line[]
function M.lines(width)
  local found = { heading(width) }
  local rows = agents.tree()
  for _, row in ipairs(rows) do
    if width < WIDE then
      vim.list_extend(found, { narrow_lines(row, width) })
    else
      table.insert(found, wide_line(row, width))
    end
  end
  if #rows == 0 then
    table.insert(found, line_of({ { "No agents yet. :Agent spawn {what to do} launches one.", "AgentLsDim" } }))
  end
  local state = review_state()
  if state ~= "" then
    for _, text in ipairs(ui.wrap(state, width)) do
      table.insert(found, line_of({ { text, "AgentLsNeedsYou" } }))
    end
  end
  return found
end

return M
