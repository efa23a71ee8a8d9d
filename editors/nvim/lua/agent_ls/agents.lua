--- All agents, as the server tells of them, and the buffer of `:Agent list`.
local M = {}

local client = require("agent_ls.client")
local config = require("agent_ls.config")
local ui = require("agent_ls.ui")

local api = vim.api

---@class agent_ls.Agent
---@field info agent_ls.AgentInfo
---@field asks table<string, boolean> ids of its open questions
---@field tools table<string, string> titles of its calls under way, by id
---@field order string[] ids of these, oldest first
---@field queue? number its place in the queue
---@field number number in the order in which we learned of them

---@type table<string, agent_ls.Agent>
local agents = {}
local LIVE = { pending = true, running = true, waiting = true }
local WORDS = { pending = "queued", completed = "done" }
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

-- What is known

---@return agent_ls.AgentInfo?
function M.get(id)
  return agents[id] and agents[id].info
end

function M.is_live(info)
  return LIVE[info.status] == true
end

--- Changes wait in a worktree of its own.
function M.is_reviewable(info)
  return info.worktree ~= nil
end

function M.title(info)
  local text = info.description ~= "" and info.description or info.agentType
  return info.name and ("%s (%s)"):format(info.name, text) or text
end

local function newest_first(one, other)
  if one.info.startedAt ~= other.info.startedAt then
    return one.info.startedAt > other.info.startedAt
  end
  return one.number > other.number
end

--- Roots, newest first, each with its descendants below it, in the order of their start.
---@return {agent: agent_ls.Agent, level: integer, last: boolean[]}[]
local function tree()
  local children, roots = {}, {}
  for _, agent in pairs(agents) do
    local parent = agent.info.parentId
    if parent and agents[parent] then
      children[parent] = children[parent] or {}
      table.insert(children[parent], agent)
    else
      table.insert(roots, agent)
    end
  end
  local rows = {}
  local function walk(list, level, last)
    for index, agent in ipairs(list) do
      local here = vim.list_extend(vim.list_slice(last), { index == #list })
      table.insert(rows, { agent = agent, level = level, last = here })
      local below = children[agent.info.id]
      if below then
        table.sort(below, function(one, other)
          return newest_first(other, one)
        end)
        walk(below, level + 1, here)
      end
    end
  end
  table.sort(roots, newest_first)
  walk(roots, 0, {})
  return rows
end

--- Those that fit, in the order of the list.
---@param fits? fun(info: agent_ls.AgentInfo): boolean
---@return agent_ls.AgentInfo[]
function M.all(fits)
  return vim
    .iter(tree())
    :map(function(row)
      return row.agent.info
    end)
    :filter(fits or function()
      return true
    end)
    :totable()
end

local function count(fits)
  return #M.all(fits)
end

--- Empty when there is nothing to say, else such as "agents: 1 needs you, 2 running". A % is safe.
function M.statusline()
  local parts = {}
  local asks = require("agent_ls.permission").count()
  local running = count(M.is_live)
  if asks > 0 then
    table.insert(parts, asks == 1 and "1 needs you" or asks .. " need you")
  end
  if running > 0 then
    table.insert(parts, running .. " running")
  end
  if client.last_fault then
    table.insert(parts, "server ended")
  end
  return #parts > 0 and "agents: " .. table.concat(parts, ", ") or ""
end

-- Following the server

local changed = false
local followers = {} ---@type fun(params: agent_ls.ProgressParams)[]

---@param follower fun(params: agent_ls.ProgressParams)
function M.follow(follower)
  table.insert(followers, follower)
end

local function record(info)
  local agent = agents[info.id]
  if not agent then
    agent = { info = info, asks = {}, tools = {}, order = {}, number = vim.tbl_count(agents) + 1 }
    agents[info.id] = agent
  end
  agent.info = info
  return agent
end

local redraw

--- Views are drawn at most ten times a second.
function M.changed()
  if changed then
    return
  end
  changed = true
  vim.defer_fn(function()
    changed = false
    redraw()
    vim.cmd.redrawstatus()
  end, 50)
end

local function finish_tool(agent, id)
  agent.tools[id] = nil
  agent.order = vim.tbl_filter(function(each)
    return each ~= id
  end, agent.order)
end

--- Unchanged buffers of files that an agent wrote are read again, as Neovim does itself when it gets the focus.
local function reload(info, paths)
  if info.worktree or not vim.o.autoread then
    return
  end
  for _, each in ipairs(paths) do
    local path = vim.startswith(each.path, "/") and each.path or vim.fs.joinpath(info.cwd, each.path)
    local buf = ui.buffer_of_file(path)
    if buf and not vim.bo[buf].modified and each.status ~= "deleted" then
      vim.cmd("silent! checktime " .. buf)
    end
  end
end

local function told_end(info)
  if info.depth > 0 and info.status == "completed" then
    return
  end
  local what = M.title(info)
  if info.status == "failed" then
    ui.warn(("Agent failed: %s: %s"):format(what, info.error or "no reason was given"))
  elseif info.status == "completed" and M.is_reviewable(info) then
    ui.note(("Agent done: %s. Its changes wait for you (:Agent review)"):format(what))
  elseif info.status == "completed" then
    ui.note(("Agent done: %s"):format(what))
  end
end

local apply = {
  started = function(_, event)
    record(event.agent)
  end,
  status = function(agent, event)
    agent.info.status = event.status
    agent.queue = event.queuePosition
  end,
  toolCall = function(agent, event)
    agent.tools[event.toolCallId] = event.title
    table.insert(agent.order, event.toolCallId)
  end,
  toolUpdate = function(agent, event)
    if event.status ~= "in_progress" then
      finish_tool(agent, event.toolCallId)
    end
  end,
  usage = function(agent, event)
    agent.info.usage = event.usage
  end,
  permissionRequested = function(agent, event)
    agent.asks[event.requestId] = true
  end,
  permissionResolved = function(agent, event)
    agent.asks[event.requestId] = nil
    require("agent_ls.permission").withdraw(event.requestId)
  end,
  filesChanged = function(agent, event)
    reload(agent.info, event.paths)
  end,
  ended = function(agent, event)
    record(event.agent)
    agent.tools, agent.order, agent.asks, agent.queue = {}, {}, {}, nil
    require("agent_ls.permission").withdraw_agent(event.agent.id)
    told_end(event.agent)
  end,
}

local function on_progress(params)
  local agent = agents[params.agentId]
  local event = params.event
  if event.kind == "started" then
    agent = record(event.agent)
  end
  if not agent then
    M.refresh()
  elseif apply[event.kind] then
    apply[event.kind](agent, event)
    M.changed()
  end
  for _, follower in ipairs(followers) do
    follower(params)
  end
end

--- Asks the server for the whole list.
---@param done? fun()
function M.refresh(done)
  client.request("list", {}, function(result)
    for index = #result.agents, 1, -1 do
      record(result.agents[index])
    end
    M.changed()
    if done then
      done()
    end
  end)
end

client.listen({
  progress = on_progress,
  ready = function()
    agents = {}
    M.refresh()
  end,
  gone = function()
    for _, agent in pairs(agents) do
      if M.is_live(agent.info) then
        agent.info.status = "interrupted"
      end
      agent.tools, agent.order, agent.asks = {}, {}, {}
    end
    M.changed()
  end,
})

--- One agent by id, name or the start of an id; without `wanted` the only one that fits, else the user chooses.
---@param wanted? string
---@param fits fun(info: agent_ls.AgentInfo): boolean
---@param none string what to say when no agent fits
---@param action fun(info: agent_ls.AgentInfo)
function M.choose(wanted, fits, none, action)
  local function select()
    local found = M.all(function(info)
      if wanted then
        return info.name == wanted or vim.startswith(info.id, wanted)
      end
      return fits(info)
    end)
    if #found == 0 then
      return ui.warn(wanted and ("There is no agent %q; :Agent list shows them all"):format(wanted) or none)
    end
    if #found == 1 then
      return action(found[1])
    end
    vim.ui.select(found, {
      prompt = "Which agent?",
      kind = "agent_ls.agent",
      format_item = function(info)
        return ("%s  %s, %s"):format(M.title(info), WORDS[info.status] or info.status, info.agentType)
      end,
    }, function(info)
      if info then
        action(info)
      end
    end)
  end
  M.refresh(select)
end

-- The buffer

local view = { buf = nil, timer = nil, rows = {} } ---@type {buf?: integer, timer?: uv.uv_timer_t, rows: table}
local namespace = api.nvim_create_namespace("agent_ls_list")
local draw, close

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
  return ui.duration((ui.epoch(info.endedAt) or os.time()) - start)
end

local function tokens(usage)
  return ui.count(usage.inputTokens + usage.cacheReadTokens + usage.cacheCreationTokens + usage.outputTokens)
end

local function cache_share(usage)
  local input = usage.inputTokens + usage.cacheReadTokens + usage.cacheCreationTokens
  return input > 0 and ("%d%%"):format(math.floor(100 * usage.cacheReadTokens / input + 0.5)) or ""
end

local function current_tool(agent)
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
  if info.status == "completed" and M.is_reviewable(info) then
    return "to review", "AgentLsKey"
  end
  return WORDS[info.status] or info.status, COLOURS[info.status]
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
  local title = ui.pad(prefix .. mark .. M.title(info), title_width)
  return line_of({
    { title .. " " },
    { ui.pad(word, STATE) .. " ", colour },
    { ui.pad(info.agentType, TYPE) .. " ", "AgentLsDim" },
    { ui.pad(current_tool(row.agent), tool_width) .. " " },
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
  local title = ui.pad(tree_prefix(row) .. MARKS[info.status] .. " " .. M.title(info), room)
  local share = cache_share(info.usage)
  local facts = { elapsed(info), tokens(info.usage), share ~= "" and share .. " cached" or "", info.agentType }
  local tool = current_tool(row.agent)
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

local function lines(width)
  local found = { heading(width) }
  local rows = tree()
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

local function paint(buf, found)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for index, line in ipairs(found) do
    for _, span in ipairs(line.spans) do
      local stop = math.min(span[2], #line.text)
      api.nvim_buf_set_extmark(buf, namespace, index - 1, span[1], { end_col = stop, hl_group = span[3] })
    end
  end
end

local function row_of(id, found)
  for index, line in ipairs(found) do
    if line.id == id then
      return index
    end
  end
end

local function first_row(found)
  for index, line in ipairs(found) do
    if line.id then
      return index
    end
  end
end

--- The cursor stays on its agent, whatever comes or goes above it.
function draw()
  local buf = view.buf
  local windows = buf and ui.windows(buf) or {}
  if #windows == 0 then
    return
  end
  local width = api.nvim_win_get_width(windows[1])
  local found = lines(width)
  local kept = {}
  for _, win in ipairs(windows) do
    local cursor = api.nvim_win_get_cursor(win)
    local at = view.rows[cursor[1]]
    kept[win] = { id = at and at.id, column = cursor[2] }
  end
  ui.set_lines(
    buf,
    vim.tbl_map(function(line)
      return (line.text:gsub("%s+$", ""))
    end, found)
  )
  for _, line in ipairs(found) do
    line.text = line.text:gsub("%s+$", "")
    line.spans = vim.tbl_filter(function(span)
      return span[1] < #line.text
    end, line.spans)
  end
  paint(buf, found)
  for win, cursor in pairs(kept) do
    local row = cursor.id and row_of(cursor.id, found) or first_row(found)
    if row then
      api.nvim_win_set_cursor(win, { row, cursor.column })
    end
  end
  view.rows = found
end

function redraw()
  draw()
end

local function tick()
  local windows = view.buf and ui.windows(view.buf) or {}
  if #windows > 0 and count(M.is_live) > 0 then
    draw()
  end
end

function close()
  if view.timer then
    view.timer:stop()
    view.timer:close()
  end
  api.nvim_create_augroup("agent_ls_list", {})
  view.timer, view.buf, view.rows = nil, nil, {}
end

local function at_cursor()
  local line = view.rows[api.nvim_win_get_cursor(0)[1]]
  return line and line.id and agents[line.id] and agents[line.id].info
end

local function on_agent(action)
  return function()
    local info = at_cursor()
    if info then
      action(info)
    else
      ui.note("Move to an agent first")
    end
  end
end

local KEYS = " <CR> log  r review  s stop  a approve  q close"

local function map_keys(buf)
  local function map(key, action, description)
    vim.keymap.set("n", key, action, { buffer = buf, nowait = true, desc = description })
  end
  map(
    "<CR>",
    on_agent(function(info)
      require("agent_ls.log").open(info)
    end),
    "Log of the agent"
  )
  map(
    "r",
    on_agent(function(info)
      require("agent_ls.review").open(info)
    end),
    "Review its changes"
  )
  map("s", on_agent(M.stop), "Stop the agent")
  map(
    "a",
    on_agent(function(info)
      require("agent_ls.permission").open(info.id)
    end),
    "Answer its question"
  )
  map("q", ui.close_window, "Close the list")
end

--- Opens the list, or goes to it.
function M.open()
  if view.buf and api.nvim_buf_is_valid(view.buf) then
    for _, win in ipairs(ui.windows(view.buf)) do
      if api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
        api.nvim_set_current_win(win)
        return M.refresh()
      end
    end
  end
  local buf = view.buf
  if not buf or not api.nvim_buf_is_valid(buf) then
    buf = ui.scratch("agents://list")
    view.buf = buf
    map_keys(buf)
    api.nvim_create_autocmd("BufWipeout", { buffer = buf, once = true, callback = close })
    api.nvim_create_autocmd({ "BufWinEnter", "WinResized", "VimResized" }, {
      group = api.nvim_create_augroup("agent_ls_list", {}),
      callback = M.changed,
    })
    view.timer = assert(vim.uv.new_timer())
    view.timer:start(1000, 1000, vim.schedule_wrap(tick))
  end
  local height = math.max(math.min(config.values.list_height, math.floor(vim.o.lines * 0.4)), 4)
  local win = api.nvim_open_win(buf, true, { split = "below", win = -1, height = height })
  ui.plain_window(win)
  vim.wo[win][0].cursorline = true
  vim.wo[win][0].winfixheight = true
  vim.wo[win][0].winbar = KEYS
  draw()
  M.refresh()
end

--- Ends a run. Its processes are gone when the server answers.
---@param info agent_ls.AgentInfo
function M.stop(info)
  if not M.is_live(info) then
    return ui.note(("%s is not running"):format(M.title(info)))
  end
  client.request("stop", { agentId = info.id }, function(result)
    record(result.agent)
    M.changed()
    ui.note(("Stopped: %s"):format(M.title(result.agent)))
  end)
end

return M
