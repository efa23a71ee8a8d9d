--- Agents in Neovim: `:Agent`, see |agent_ls.txt|. `setup` is only for what differs from the defaults.
local M = {}

local config = require("agent_ls.config")
local ui = require("agent_ls.ui")

local SETTINGS =
  { model = "model", isolation = "isolation", name = "name", mode = "permissionMode", type = "agentType" }
local VALUES = {
  model = { "opus", "sonnet", "haiku", "fable" },
  isolation = { "worktree", "none" },
  mode = { "default", "acceptEdits", "plan", "dontAsk", "bubble" },
}
---@type agent_ls.Definition[] what `:Agent spawn` completes
local definitions = {}

ui.define_highlights()

---@param given? agent_ls.Config|table
function M.setup(given)
  config.set(given)
end

--- For 'statusline': empty, or such as "agents: 1 needs you, 2 running".
function M.statusline()
  if not package.loaded["agent_ls.agents"] then
    return ""
  end
  return require("agent_ls.agents").statusline()
end

-- Spawning

local function load_definitions(action)
  require("agent_ls.client").request("definitions", {}, function(result)
    definitions = vim.tbl_filter(function(each)
      return not each.overridden
    end, result.agents)
    action()
  end)
end

local function is_type(word)
  return vim.iter(definitions):any(function(each)
    return each.name == word
  end)
end

--- Words `key=value`, then perhaps a type of agent, then the prompt; `--` ends the first two.
---@return table params, string prompt
function M.parse(text)
  local params = {}
  local rest = vim.trim(text)
  while rest ~= "" do
    local word = rest:match("^%S+")
    local key, value = word:match("^(%a+)=(.+)$")
    if word == "--" then
      return params, vim.trim(rest:sub(3))
    elseif key and SETTINGS[key] then
      params[SETTINGS[key]] = value
    elseif not params.agentType and is_type(word) then
      params.agentType = word
    else
      return params, rest
    end
    rest = vim.trim(rest:sub(#word + 1))
  end
  return params, ""
end

--- What the user selected: the lines, and the diagnostics in them.
local function context_of(buf, first, last)
  local name = vim.api.nvim_buf_get_name(buf)
  if name == "" or vim.bo[buf].buftype ~= "" then
    return nil
  end
  local text = vim.api.nvim_buf_get_lines(buf, last - 1, last, false)[1] or ""
  local encoding = require("agent_ls.client").get().offset_encoding
  local found = vim.tbl_filter(function(each)
    return each.lnum >= first - 1 and each.lnum <= last - 1
  end, vim.diagnostic.get(buf))
  return {
    uri = vim.uri_from_bufnr(buf),
    range = {
      start = { line = first - 1, character = 0 },
      ["end"] = { line = last - 1, character = vim.str_utfindex(text, encoding) },
    },
    diagnostics = #found > 0 and vim.lsp.diagnostic.from(found) or nil,
  }
end

local function launch(params, prompt)
  if not prompt or not prompt:match("%S") then
    return
  end
  params.prompt = prompt
  require("agent_ls.client").request("spawn", params, function(result)
    require("agent_ls.agents").changed()
    ui.note(("Launched: %s (:Agent list)"):format(require("agent_ls.agents").title(result.agent)))
  end)
end

local function spawn(text, range)
  local client = require("agent_ls.client")
  local buf = vim.api.nvim_get_current_buf()
  local root = client.root(buf)
  client.with_server(function()
    load_definitions(function()
      local params, prompt = M.parse(text)
      params.cwd = root
      params.context = range and context_of(buf, range[1], range[2])
      if prompt ~= "" then
        return launch(params, prompt)
      end
      vim.ui.input({ prompt = "What shall the agent do? " }, function(given)
        launch(params, given)
      end)
    end)
  end, root)
end

-- The command

local function choose(wanted, fits, none, action)
  require("agent_ls.agents").choose(wanted ~= "" and wanted or nil, fits, none, action)
end

local function any()
  return true
end

local commands = {
  spawn = spawn,
  list = function()
    require("agent_ls.agents.list").open()
  end,
  approve = function()
    require("agent_ls.client").with_server(function()
      require("agent_ls.permission").open()
    end)
  end,
  review = function(wanted)
    local agents = require("agent_ls.agents")
    local none =
      "Nothing to review: no agent worked in a worktree of its own (isolation=worktree) and changed something"
    choose(wanted, agents.is_reviewable, none, function(info)
      require("agent_ls.review").open(info)
    end)
  end,
  finish = function(wanted)
    local none = "Nothing to keep: no agent worked in a worktree of its own (isolation=worktree) and changed something"
    choose(wanted, require("agent_ls.agents").is_reviewable, none, function(info)
      require("agent_ls.finish").open(info)
    end)
  end,
  stop = function(wanted)
    local agents = require("agent_ls.agents")
    choose(wanted, agents.is_live, "No agent is running", agents.stop)
  end,
  background = function(wanted)
    local agents = require("agent_ls.agents")
    choose(wanted, agents.is_foreground, "No agent is waited for by another one", agents.background)
  end,
  resume = function(wanted)
    local agents = require("agent_ls.agents")
    choose(wanted, agents.is_resumable, "No agent was interrupted or stopped, and none failed", agents.resume)
  end,
  send = function(wanted)
    choose(wanted, any, "There are no agents yet", require("agent_ls.agents").send)
  end,
  fork = function(wanted)
    local agents = require("agent_ls.agents")
    choose(wanted, agents.is_forkable, "No agent has said anything yet", agents.fork)
  end,
  trust = function(word)
    if word ~= "" and word ~= "no" then
      return ui.fail((":Agent trust takes no, or nothing, not %s"):format(word))
    end
    require("agent_ls.client").trust(word == "")
  end,
  log = function(wanted)
    choose(wanted, any, "There are no agents yet", function(info)
      require("agent_ls.log").open(info)
    end)
  end,
}
local NAMES =
  { "spawn", "list", "approve", "review", "finish", "stop", "background", "resume", "send", "fork", "log", "trust" }
--- Which agents each command is for.
local FITS = {
  review = "is_reviewable",
  finish = "is_reviewable",
  stop = "is_live",
  background = "is_foreground",
  resume = "is_resumable",
  fork = "is_forkable",
}

--- `:Agent {name} {rest}`
---@param args {args: string, range: integer, line1: integer, line2: integer}
function M.command(args)
  if vim.fn.has("nvim-0.11") ~= 1 then
    return ui.fail("agent_ls needs Neovim 0.11 or newer")
  end
  -- Every view follows the server from the start, so that no question is missed.
  require("agent_ls.agents")
  require("agent_ls.permission")
  local name, rest = args.args:match("^(%S*)%s*(.*)$")
  local command = commands[name == "" and "list" or name]
  if not command then
    return ui.fail((":Agent %s: there is no such command; there are: %s"):format(name, table.concat(NAMES, ", ")))
  end
  command(rest, args.range > 0 and { args.line1, args.line2 } or nil)
end

local function starting_with(lead, words)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

local function agent_words(fits)
  return vim.tbl_map(function(info)
    return info.name or info.id
  end, require("agent_ls.agents").all(fits))
end

local function spawn_words(lead)
  local key = lead:match("^(%a+)=")
  if key then
    return vim.tbl_map(function(value)
      return key .. "=" .. value
    end, VALUES[key] or {})
  end
  local words = vim.tbl_map(function(each)
    return each.name
  end, definitions)
  return vim.list_extend(words, { "isolation=", "mode=", "model=", "name=", "type=" })
end

--- Completion of `:Agent`.
function M.complete(lead, line, column)
  local before = line:sub(1, column)
  local name = before:match("Agent!?%s+(%S+)%s")
  if not name then
    return starting_with(lead, NAMES)
  end
  if name == "spawn" then
    return starting_with(lead, spawn_words(lead))
  end
  local agents = package.loaded["agent_ls.agents"]
  if not agents or not (FITS[name] or name == "send" or name == "log") then
    return {}
  end
  return starting_with(lead, agent_words(agents[FITS[name]]))
end

return M
