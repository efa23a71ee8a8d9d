--- All agents, as the server tells of them.
local M = {}

local client = require("agent_ls.client")
local ui = require("agent_ls.ui")

---@class agent_ls.Agent
---@field info agent_ls.AgentInfo
---@field asks table<string, boolean> ids of its open questions
---@field tools table<string, string> titles of its calls under way, by id
---@field order string[] ids of these, oldest first
---@field queue? number its place in the queue
---@field summary? string one line on what it does, where the setting progressSummaries is on
---@field number number in the order in which we learned of them

---@type table<string, agent_ls.Agent>
local agents = {}
local LIVE = { pending = true, running = true, waiting = true }
local WORDS = { pending = "queued", completed = "done" }

-- What is known

---@return agent_ls.AgentInfo?
function M.get(id)
  return agents[id] and agents[id].info
end

function M.is_live(info)
  return LIVE[info.status] == true
end

--- Its parent waits for it.
function M.is_foreground(info)
  return M.is_live(info) and info.parentId ~= nil and not info.background
end

--- It works below another agent that does not wait for it.
function M.is_background(info)
  return info.parentId ~= nil and info.background
end

--- It ended before its work was done.
function M.is_resumable(info)
  return not M.is_live(info) and info.status ~= "completed"
end

--- It has said something that a fork can go on from.
function M.is_forkable(info)
  return info.usage.turns > 0
end

--- Changes wait in a worktree of its own.
function M.is_reviewable(info)
  return info.worktree ~= nil
end

function M.word(info)
  return WORDS[info.status] or info.status
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
function M.tree()
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
    .iter(M.tree())
    :map(function(row)
      return row.agent.info
    end)
    :filter(fits or function()
      return true
    end)
    :totable()
end

--- Empty when there is nothing to say, else such as "agents: 1 needs you, 2 running". A % is safe.
function M.statusline()
  local parts = {}
  local asks = require("agent_ls.permission").count()
  local running = #M.all(M.is_live)
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

local drawers = {} ---@type fun()[]

--- A view that shows agents.
---@param drawer fun()
function M.on_changed(drawer)
  table.insert(drawers, drawer)
end

--- Views are drawn at most ten times a second.
function M.changed()
  if changed then
    return
  end
  changed = true
  vim.defer_fn(function()
    changed = false
    for _, drawer in ipairs(drawers) do
      drawer()
    end
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
  if info.depth > 0 and info.status == "completed" and not M.is_background(info) then
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
    agent.info.background = event.background
    agent.queue = event.queuePosition
    agent.summary = event.summary or agent.summary
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
    local outcome = event.decidedBy == "user" and event.outcome or nil
    require("agent_ls.permission").withdraw(event.requestId, outcome)
  end,
  filesChanged = function(agent, event)
    reload(agent.info, event.paths)
  end,
  ended = function(agent, event)
    record(event.agent)
    agent.tools, agent.order, agent.asks, agent.queue, agent.summary = {}, {}, {}, nil, nil
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
        return ("%s  %s, %s"):format(M.title(info), M.word(info), info.agentType)
      end,
    }, function(info)
      if info then
        action(info)
      end
    end)
  end
  M.refresh(select)
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

local function ask_server(name, params, said)
  client.request(name, params, function(result)
    record(result.agent)
    M.changed()
    ui.note(("%s: %s"):format(said, M.title(result.agent)))
  end)
end

--- Whoever waits for it goes on, and is told when it ends.
---@param info agent_ls.AgentInfo
function M.background(info)
  if not M.is_foreground(info) then
    return ui.note(("No agent waits for %s"):format(M.title(info)))
  end
  ask_server("background", { agentId = info.id }, "In the background")
end

--- Goes on with one that was interrupted or stopped, or failed.
---@param info agent_ls.AgentInfo
function M.resume(info)
  if not M.is_resumable(info) then
    local why = M.is_live(info) and "is running" or "is done; send it a message instead (:Agent send)"
    return ui.note(("%s %s"):format(M.title(info), why))
  end
  ask_server("resume", { agentId = info.id }, "Resumed")
end

--- Tells it something. One that has ended goes on with it.
---@param info agent_ls.AgentInfo
function M.send(info)
  vim.ui.input({ prompt = ("To %s: "):format(M.title(info)) }, function(text)
    if text and text:match("%S") then
      ask_server("send", { to = info.id, message = vim.trim(text) }, "Sent to")
    end
  end)
end

--- Starts another agent that knows all that this one knows.
---@param info agent_ls.AgentInfo
function M.fork(info)
  if not M.is_forkable(info) then
    return ui.note(("%s has not said anything yet"):format(M.title(info)))
  end
  vim.ui.input({ prompt = "What shall the fork do? " }, function(text)
    if text and text:match("%S") then
      ask_server("spawn", { prompt = vim.trim(text), fork = true, parentId = info.id }, "Forked")
    end
  end)
end

return M
