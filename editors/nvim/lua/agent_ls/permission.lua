--- Questions of agents: a queue, and the window of `:Agent approve`. A question never opens a window by itself.
---
--- The window has two parts: what would happen (scrolls, has the focus) and below it the answers (always whole). No key
--- allows by default, and for a moment after a question appears no key counts.
local M = {}

local client = require("agent_ls.client")
local config = require("agent_ls.config")
local ui = require("agent_ls.ui")

local api = vim.api

---@class agent_ls.Ask
---@field params agent_ls.PermissionParams
---@field reply? fun(result: agent_ls.PermissionResult) answers the server's own request
---@field answered? boolean

---@type agent_ls.Ask[]
local queue = {}
local namespace = api.nvim_create_namespace("agent_ls_ask")
local view = {} ---@type {ask?: agent_ls.Ask, body?: integer, answers?: integer, shown?: number, back?: integer}

local show, hide

function M.count()
  return #queue
end

local function find(request_id)
  for index, ask in ipairs(queue) do
    if ask.params.requestId == request_id then
      return ask, index
    end
  end
end

local function changed()
  require("agent_ls.agents").changed()
end

local function who(agent)
  local what = ui.visible(agent.description)
  return what ~= "" and ("%s (%s)"):format(agent.agentType, what) or agent.agentType
end

local function announce()
  local first = queue[1]
  if not first then
    return
  end
  local text = ("%s asks: %s"):format(who(first.params.agent), ui.visible(first.params.title))
  if #queue > 1 then
    text = ("%d questions wait. First: %s"):format(#queue, text)
  end
  local hint = "  :Agent approve"
  ui.warn(ui.truncate(text, math.max(vim.v.echospace - #hint, 20)) .. hint)
end

--- Takes a question in, with the way to answer it (none: by `agent/answer`).
---@param params agent_ls.PermissionParams
---@param reply? fun(result: agent_ls.PermissionResult)
function M.add(params, reply)
  local known = find(params.requestId)
  if known then
    known.reply = known.reply or reply
    return
  end
  table.insert(queue, { params = params, reply = reply })
  announce()
  changed()
  if view.body then
    show(view.ask)
  end
end

local function remove(ask, message)
  for index, each in ipairs(queue) do
    if each == ask then
      table.remove(queue, index)
    end
  end
  changed()
  if view.ask ~= ask then
    if view.body then
      show(view.ask)
    end
    return
  end
  if message then
    ui.note(message)
  end
  if queue[1] then
    show(queue[1])
  else
    hide()
  end
end

--- The question was answered elsewhere, or nobody needs the answer any more.
function M.withdraw(request_id)
  local ask = find(request_id)
  if ask then
    ask.answered = true
    if ask.reply then
      ask.reply({ cancelled = true })
    end
    remove(ask, "The question was answered elsewhere or withdrawn")
  end
end

function M.withdraw_agent(agent_id)
  for _, ask in ipairs(vim.list_slice(queue)) do
    if ask.params.agent.id == agent_id then
      M.withdraw(ask.params.requestId)
    end
  end
end

---@param ask agent_ls.Ask
---@param option agent_ls.PermissionOption
---@param comment? string
local function answer(ask, option, comment)
  if ask.answered then
    return
  end
  ask.answered = true
  local result = { optionId = option.id, comment = comment, destination = option.destination }
  if ask.reply then
    ask.reply(result)
  else
    local params = vim.tbl_extend("force", result, { requestId = ask.params.requestId })
    client.request("answer", params, function(told)
      if not told.accepted then
        ui.warn(("The answer came too late: %s"):format(told.reason or "the question is not open any more"))
      end
    end)
  end
  remove(ask)
end

-- The window

--- The answers with their keys. Where room is short each takes one line, and their whole text stands in the body.
---@return string[] lines, string[] shortened
local function option_lines(ask, width, room)
  local wrapped, short, shortened = {}, {}, {}
  for index, option in ipairs(ask.params.options) do
    local key = (" %d  "):format(index)
    local label = ui.visible(option.label)
    for number, text in ipairs(ui.wrap(label, width - 5)) do
      table.insert(wrapped, (number == 1 and key or "    ") .. text)
    end
    local line = ui.shorten(label, width - 5)
    table.insert(short, key .. line)
    if line ~= label then
      table.insert(shortened, key .. label)
    end
  end
  local has_reject = vim.iter(ask.params.options):any(function(option)
    return option.kind == "rejectOnce"
  end)
  local last = (has_reject and " r  Reject and say why   " or " ") .. "q  Decide later"
  local fits = #wrapped + 1 <= room
  return vim.list_extend(fits and wrapped or short, { last }), fits and {} or shortened
end

local function add_wrapped(lines, text, width, indent)
  for _, part in ipairs(vim.split(text, "\n", { plain = true })) do
    vim.list_extend(lines, ui.wrap(part, width, indent))
  end
end

local function size_of(text)
  return ui.plural(#vim.split(text, "\n", { plain = true }), "line")
end

--- What would happen: the command and where, the diff, or the input as it is.
local function detail_lines(params, width)
  local lines, diff_from = {}, nil
  local detail = params.detail or {}
  if detail.command then
    table.insert(lines, "Command:")
    for _, part in ipairs(vim.split(ui.visible(detail.command), "\n", { plain = true })) do
      for _, text in ipairs(ui.wrap("  " .. part, width, "  ")) do
        table.insert(lines, text)
      end
    end
    add_wrapped(lines, "Directory: " .. ui.visible(detail.cwd or "unknown"), width, "  ")
  end
  if detail.url then
    add_wrapped(lines, "Address: " .. ui.visible(detail.url), width, "  ")
  end
  if detail.server then
    add_wrapped(lines, "Server: " .. ui.visible(detail.server), width, "  ")
  end
  if detail.diff and detail.diff ~= "" then
    diff_from = #lines + 1
    vim.list_extend(lines, vim.split((ui.visible(detail.diff, "\t"):gsub("\n$", "")), "\n", { plain = true }))
  elseif not detail.command and not detail.url then
    if detail.edit or params.tool.kind == "edit" then
      local text = params.input.content or params.input.new_string or ""
      local path = params.input.file_path or "the file"
      add_wrapped(lines, ("No diff can be shown of %s: %s."):format(ui.visible(path), size_of(text)), width, "  ")
    end
    add_wrapped(lines, "Input:", width)
    add_wrapped(lines, ui.visible(vim.inspect(params.input)), width, "  ")
  end
  return lines, diff_from
end

local function body_lines(ask, width, shortened)
  local params = ask.params
  local lines = {}
  add_wrapped(lines, who(params.agent), width, "  ")
  for _, link in ipairs(params.agent.chain) do
    add_wrapped(lines, "  for " .. who(link), width, "    ")
  end
  add_wrapped(lines, "asks: " .. ui.visible(params.title), width, "  ")
  local title_end = #lines
  if params.reason ~= "" then
    add_wrapped(lines, ui.visible(params.reason), width)
  end
  local reason_end = #lines
  table.insert(lines, "")
  local detail, diff_from = detail_lines(params, width)
  local offset = #lines
  vim.list_extend(lines, detail)
  local diff_end = #lines
  if #shortened > 0 then
    vim.list_extend(lines, { "", "The answers in full:" })
    for _, text in ipairs(shortened) do
      add_wrapped(lines, text, width, "    ")
    end
  end
  local first = diff_from and diff_from + offset
  return lines, { title_end = title_end, reason_end = reason_end, diff_from = first, diff_end = diff_end }
end

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
  for index, line in ipairs(lines) do
    local group = nil
    if index <= parts.title_end then
      group = "AgentLsTitle"
    elseif index <= parts.reason_end then
      group = "AgentLsDim"
    elseif parts.diff_from and index >= parts.diff_from and index <= parts.diff_end then
      group = colour_of(line)
    end
    if group then
      api.nvim_buf_set_extmark(buf, namespace, index - 1, 0, { line_hl_group = group })
    end
  end
end

local function paint_keys(buf, lines)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for index, line in ipairs(lines) do
    for start, key in line:gmatch("()(%w)  ") do
      if start == 2 or line:sub(start - 2, start - 1) == "  " and index == #lines then
        api.nvim_buf_set_extmark(
          buf,
          namespace,
          index - 1,
          start - 1,
          { end_col = start - 1 + #key, hl_group = "AgentLsKey" }
        )
      end
    end
  end
end

--- Keys count only when the question has been there for a moment (A14).
local function guarded(action)
  return function()
    if not view.ask or vim.uv.now() - view.shown < config.values.guard_ms then
      return
    end
    action(view.ask)
  end
end

local function choose(number)
  return guarded(function(ask)
    local option = ask.params.options[number]
    if option then
      answer(ask, option)
    end
  end)
end

local reject_with_reason = guarded(function(ask)
  local option = vim.iter(ask.params.options):find(function(each)
    return each.kind == "rejectOnce"
  end)
  if not option then
    return
  end
  vim.ui.input({ prompt = "Why not? (the agent reads this) " }, function(text)
    if text and text:match("%S") then
      answer(ask, option, vim.trim(text))
    end
  end)
end)

local function map_keys(buf)
  local function map(key, action, description)
    vim.keymap.set("n", key, action, { buffer = buf, nowait = true, desc = description })
  end
  for number = 1, 9 do
    map(tostring(number), choose(number), "Answer " .. number)
  end
  map("r", reject_with_reason, "Reject and say why")
  map("q", function()
    hide()
  end, "Decide later")
  -- Nothing is chosen by a key that means something else elsewhere.
  for _, key in ipairs({ "<CR>", "<Esc>", "<Space>" }) do
    map(key, "<Nop>", "Chooses nothing")
  end
end

local function layout(ask)
  local width = math.max(math.min(100, vim.o.columns - 4), 20)
  local room = vim.o.lines - vim.o.cmdheight - 1
  local answers, shortened = option_lines(ask, width, math.floor(room * 0.4))
  local body, parts = body_lines(ask, width, shortened)
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

local function buffer_of(win)
  return win and api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) or nil
end

local function title(ask)
  local index = select(2, find(ask.params.requestId))
  return (" Question %d of %d "):format(index or 1, #queue)
end

local function below(part)
  if #part.lines <= part.height then
    return ""
  end
  return (" %d lines, scroll with j and k "):format(#part.lines)
end

--- Draws the question first and takes keys after it (D24).
---@param ask agent_ls.Ask
function show(ask)
  local placed = layout(ask)
  local new = view.ask ~= ask
  local body = buffer_of(view.body)
  local answers = buffer_of(view.answers)
  if not body or not answers then
    hide()
    view.back = api.nvim_get_current_win()
    body, answers = ui.scratch("agents://question"), ui.scratch("agents://answers")
    map_keys(body)
    api.nvim_create_autocmd("BufWipeout", {
      buffer = body,
      once = true,
      callback = vim.schedule_wrap(function()
        hide()
      end),
    })
  end
  ui.set_lines(body, placed.body.lines)
  ui.set_lines(answers, placed.answers.lines)
  paint(body, placed.body.lines, placed.body.parts)
  paint_keys(answers, placed.answers.lines)
  local footer = below(placed.body)
  view.body = float(view.body, body, placed, placed.body, { title = title(ask), footer = footer })
  view.answers = float(view.answers, answers, placed, placed.answers, { title = " Your answer ", focusable = false })
  vim.wo[view.body][0].wrap = true
  view.ask = ask
  if new then
    api.nvim_win_set_cursor(view.body, { 1, 0 })
    view.shown = vim.uv.now()
  end
end

function hide()
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

--- Opens the oldest question, or the oldest one of an agent.
---@param agent_id? string
function M.open(agent_id)
  local wanted = vim.iter(queue):find(function(ask)
    return ask.params.agent.id == agent_id
  end) or queue[1]
  if not wanted then
    return ui.note("No agent asks for anything")
  end
  api.nvim_echo({ { "" } }, false, {})
  show(wanted)
  api.nvim_set_current_win(view.body)
end

api.nvim_create_autocmd("VimResized", {
  group = api.nvim_create_augroup("agent_ls_ask", {}),
  callback = function()
    if view.ask then
      show(view.ask)
    end
  end,
})

client.listen({
  ready = function()
    client.request("permissions", {}, function(result)
      for _, params in ipairs(result.requests) do
        M.add(params)
      end
    end)
  end,
  gone = function()
    queue = {}
    hide()
    changed()
  end,
})

return M
