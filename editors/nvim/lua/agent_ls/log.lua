--- What an agent said and did, as a document that follows it.
local M = {}

local agents = require("agent_ls.agents")
local client = require("agent_ls.client")
local ui = require("agent_ls.ui")

local api = vim.api

---@class agent_ls.Log
---@field buf integer
---@field lines string[] what is in the transcript
---@field partial string the text of a message that is still being written
---@field asked boolean a request is under way
---@field again boolean and another one is needed

---@type table<string, agent_ls.Log>
local logs = {}

--- A window whose cursor is on the last line stays there.
local function draw(log)
  if not api.nvim_buf_is_valid(log.buf) then
    return
  end
  local at_end = {}
  local count = api.nvim_buf_line_count(log.buf)
  for _, win in ipairs(ui.windows(log.buf)) do
    at_end[win] = api.nvim_win_get_cursor(win)[1] >= count
  end
  local lines = vim.list_slice(log.lines)
  if log.partial ~= "" then
    vim.list_extend(lines, vim.split(log.partial, "\n", { plain = true }))
  end
  ui.set_lines(log.buf, lines)
  for win, follows in pairs(at_end) do
    if follows then
      api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(log.buf), 0 })
    end
  end
end

local function fetch(id)
  local log = logs[id]
  if not log then
    return
  end
  if log.asked then
    log.again = true
    return
  end
  log.asked = true
  client.request("content", { uri = ("agent-transcript:/%s.md"):format(id) }, function(result)
    log.asked = false
    log.lines = vim.split(vim.trim(result.text), "\n", { plain = true })
    draw(log)
    if log.again then
      log.again = false
      vim.defer_fn(function()
        fetch(id)
      end, 100)
    end
  end, function(message)
    log.asked = false
    ui.warn(message)
  end)
end

agents.follow(function(params)
  local log = logs[params.agentId]
  if not log then
    return
  end
  local event = params.event
  if event.kind == "text" then
    log.partial = log.partial .. event.delta
    draw(log)
  elseif event.kind == "retry" then
    log.partial = ""
    draw(log)
  elseif params.deltaSeq == nil then
    if event.kind == "message" then
      log.partial = ""
    end
    fetch(params.agentId)
  end
end)

---@param info agent_ls.AgentInfo
function M.open(info)
  local log = logs[info.id]
  if log and api.nvim_buf_is_valid(log.buf) then
    local win = ui.windows(log.buf)[1]
    if win then
      return api.nvim_set_current_win(win)
    end
  end
  local buf = ui.scratch("agents://log of " .. ui.visible(agents.title(info)))
  logs[info.id] = { buf = buf, lines = {}, partial = "", asked = false, again = false }
  pcall(vim.treesitter.start, buf, "markdown")
  vim.keymap.set("n", "q", ui.close_window, { buffer = buf, nowait = true, desc = "Close the log" })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    once = true,
    callback = function()
      logs[info.id] = nil
    end,
  })
  local win = api.nvim_open_win(buf, true, { split = "above", win = 0 })
  ui.plain_window(win)
  vim.wo[win][0].wrap = true
  vim.wo[win][0].linebreak = true
  vim.wo[win][0].winbar = (" Log of %s   q close"):format((ui.visible(agents.title(info)):gsub("%%", "%%%%")))
  fetch(info.id)
end

return M
