--- The window of a question: what would happen (scrolls, has the focus) and below it the answers (always whole).
---
--- For a moment after something else is shown, or the focus comes, no key counts (A14).
local M = {}

local config = require("agent_ls.config")
local text = require("agent_ls.permission.text")
local ui = require("agent_ls.ui")

local api = vim.api
local namespace = api.nvim_create_namespace("agent_ls_ask")

---@class agent_ls.AskView
---@field ask? agent_ls.Ask
---@field choice? agent_ls.Choice a lasting answer whose file is being chosen
---@field body? integer window
---@field answers? integer window
---@field since? number when it was shown, or got the focus
---@field back? integer the window to go back to
local view = {}
local map_keys ---@type fun(buf: integer)

local function colour_of(line)
  if line:match("^@@") then
    return "AgentLsHunk"
  elseif line:match("^%+%+%+") or line:match("^%-%-%-") then
    return "AgentLsDim"
  elseif line:match("^%+") then
    return "AgentLsAdded"
  elseif line:match("^%-") then
    return "AgentLsRemoved"
  end
end

local function paint(buf, lines, parts)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local function colour(range, group)
    for index = range[1], range[2] do
      local name = group or colour_of(lines[index])
      if name then
        api.nvim_buf_set_extmark(buf, namespace, index - 1, 0, { line_hl_group = name })
      end
    end
  end
  colour(parts.title, "AgentLsTitle")
  for _, range in ipairs(parts.dim) do
    colour(range, "AgentLsDim")
  end
  if parts.diff then
    colour(parts.diff)
  end
end

local function buffer_of(win)
  return win and api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) or nil
end

local function is_early()
  return vim.uv.now() - view.since < config.values.guard_ms
end

--- Keys get their colour when they count.
local function paint_keys()
  local buf = buffer_of(view.answers)
  if not buf or not view.ask then
    return
  end
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  local group = is_early() and "AgentLsDim" or "AgentLsKey"
  for _, mark in ipairs(view.marks) do
    local place = { end_col = mark[2] + mark[3], hl_group = group }
    api.nvim_buf_set_extmark(buf, namespace, mark[1] - 1, mark[2], place)
  end
end

local function guard()
  view.since = vim.uv.now()
  paint_keys()
  vim.defer_fn(paint_keys, config.values.guard_ms + 10)
end

---@param queue agent_ls.Ask[]
local function layout(ask, queue)
  local width = math.max(math.min(100, vim.o.columns - 4), 20)
  local room = vim.o.lines - vim.o.cmdheight - 1
  local most = math.floor(room * 0.4)
  local answers, shortened
  if view.choice then
    answers, shortened, view.marks = text.stores(ask, view.choice, width, most)
  else
    answers, shortened, view.marks = text.answers(ask, #queue > 1, width, most)
  end
  local body, parts = text.body(ask, text.others(queue, ask), width, shortened)
  local answers_height = math.min(#answers, math.max(room - 7, 3))
  local height = math.max(math.min(#body, room - answers_height - 4), 2)
  local total = height + answers_height + 4
  local row = math.max(math.floor((room - total) / 2), 0)
  return {
    width = width,
    col = math.max(math.floor((vim.o.columns - width - 2) / 2), 0),
    body = { lines = body, parts = parts, row = row, height = height },
    answers = { lines = answers, row = row + height + 2, height = answers_height },
  }
end

local function float(win, buf, placed, part, options)
  local settings = vim.tbl_extend("force", {
    relative = "editor",
    style = "minimal",
    border = "single",
    width = placed.width,
    height = part.height,
    col = placed.col,
    row = part.row,
    zindex = 60,
  }, options)
  if win and api.nvim_win_is_valid(win) then
    api.nvim_win_set_config(win, settings)
    return win
  end
  return api.nvim_open_win(buf, options.focusable ~= false, settings)
end

local function title(ask, queue)
  for index, each in ipairs(queue) do
    if each == ask then
      return (" Question %d of %d "):format(index, #queue)
    end
  end
end

local function below(part)
  if #part.lines <= part.height then
    return ""
  end
  return (" %d lines, scroll with j and k "):format(#part.lines)
end

function M.is_open()
  return view.body ~= nil
end

---@return agent_ls.Ask?
function M.ask()
  return view.ask
end

---@return agent_ls.Choice?
function M.choice()
  return view.choice
end

function M.keys(map)
  map_keys = map
end

--- An action for a key: it gets the question that is shown, and does nothing when that was shown a moment ago.
---@param action fun(ask: agent_ls.Ask)
function M.guarded(action)
  return function()
    if view.ask and not view.ask.sending and not is_early() then
      action(view.ask)
    end
  end
end

--- Draws the question first and takes keys after it (D24).
---@param ask agent_ls.Ask
---@param queue agent_ls.Ask[]
---@param choice? agent_ls.Choice the file of this answer is asked for
function M.show(ask, queue, choice)
  local new = view.ask ~= ask or view.choice ~= choice
  local top = view.ask ~= ask
  view.choice = choice
  local body, answers = buffer_of(view.body), buffer_of(view.answers)
  if not body or not answers then
    M.hide()
    view.choice = choice
    view.back = api.nvim_get_current_win()
    body, answers = ui.scratch("agents://question"), ui.scratch("agents://answers")
    map_keys(body)
    api.nvim_create_autocmd("BufEnter", { buffer = body, callback = M.guard })
    -- A click there answers nothing, and leaves the keys where they were.
    api.nvim_create_autocmd("BufEnter", { buffer = answers, callback = vim.schedule_wrap(M.focus) })
    api.nvim_create_autocmd("BufWipeout", { buffer = body, once = true, callback = vim.schedule_wrap(M.hide) })
  end
  local placed = layout(ask, queue)
  ui.set_lines(body, placed.body.lines)
  ui.set_lines(answers, placed.answers.lines)
  paint(body, placed.body.lines, placed.body.parts)
  view.ask = ask
  view.since = view.since or 0
  local heading = choice and " Store it in which file? " or " Your answer "
  view.body = float(view.body, body, placed, placed.body, { title = title(ask, queue), footer = below(placed.body) })
  view.answers =
    float(view.answers, answers, placed, placed.answers, { title = heading, focusable = false, mouse = true })
  vim.wo[view.body][0].wrap = true
  if top then
    api.nvim_win_set_cursor(view.body, { 1, 0 })
  end
  if new then
    guard()
  else
    paint_keys()
  end
end

--- What was pressed until now was meant for something else.
function M.guard()
  if view.ask then
    guard()
  end
end

function M.focus()
  if view.body then
    api.nvim_set_current_win(view.body)
  end
end

--- The window that had the focus before gets it back, if the question has it.
function M.hide()
  local body, answers, back = view.body, view.answers, view.back
  local focused = body ~= nil and api.nvim_get_current_win() == body
  view = {}
  for _, win in ipairs({ body, answers }) do
    if api.nvim_win_is_valid(win) then
      pcall(api.nvim_win_close, win, true)
    end
  end
  if focused and back and api.nvim_win_is_valid(back) then
    api.nvim_set_current_win(back)
  end
end

return M
