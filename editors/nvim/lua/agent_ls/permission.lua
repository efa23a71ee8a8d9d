--- Questions of agents: a queue, and the answers to it. A question never opens a window by itself.
---
--- No key allows by default. A comment and a changed input are kept with the question and go along with the answer; to
--- write one never answers. A lasting answer takes a second step, in which the file is chosen.
local M = {}

local client = require("agent_ls.client")
local input = require("agent_ls.permission.input")
local text = require("agent_ls.permission.text")
local ui = require("agent_ls.ui")
local view = require("agent_ls.permission.view")

local api = vim.api

---@class agent_ls.Ask
---@field params agent_ls.PermissionParams
---@field reply? fun(result: agent_ls.PermissionResult) ends the server's own request
---@field sending? boolean an answer is on its way
---@field comment? string goes along with the answer
---@field input? table the person's, instead of the agent's

---@type agent_ls.Ask[]
local queue = {}

--- Those that no answer is on its way for.
local function open_ones()
  return vim.iter(queue):filter(function(ask)
    return not ask.sending
  end)
end

function M.count()
  return #open_ones():totable()
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

local function named(ask)
  return ("%s, asked by %s"):format(ui.visible(ask.params.title), text.who(ask.params.agent))
end

local function announce()
  local first = queue[1]
  if not first then
    return
  end
  local words = ("%s asks: %s"):format(text.who(first.params.agent), ui.visible(first.params.title))
  if #queue > 1 then
    words = ("%d questions wait. First: %s"):format(#queue, words)
  end
  local hint = "  :Agent approve"
  ui.warn(ui.truncate(words, math.max(vim.v.echospace - #hint, 20)) .. hint)
end

local function redraw()
  if view.ask() then
    view.show(view.ask(), queue, view.choice())
  end
end

--- Takes a question in, with the way to end the server's own request, if there is one.
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
  redraw()
end

local function remove(ask)
  for index, each in ipairs(queue) do
    if each == ask then
      table.remove(queue, index)
    end
  end
  if ask.reply then
    ask.reply({ cancelled = true }) -- decides nothing
  end
  changed()
  if view.ask() ~= ask then
    redraw()
  elseif queue[1] then
    view.show(queue[1], queue)
  else
    view.hide()
  end
end

--- The question was answered elsewhere, or nobody needs the answer any more.
---@param request_id string
---@param outcome? string what somebody chose
function M.withdraw(request_id, outcome)
  local ask = find(request_id)
  if not ask then
    return
  end
  local shown = view.ask() == ask
  if not ask.sending then
    local chosen = outcome and text.outcome(outcome)
    if chosen then
      ui.note(("Answered elsewhere, %s: %s"):format(chosen, named(ask)))
    elseif shown then
      ui.note(("Not asked any more: %s"):format(named(ask)))
    end
  end
  remove(ask)
end

function M.withdraw_agent(agent_id)
  for _, ask in ipairs(vim.list_slice(queue)) do
    if ask.params.agent.id == agent_id then
      M.withdraw(ask.params.requestId)
    end
  end
end

--- The comment, or else the reason, is told again when it was not sent.
local function not_sent(ask, reason, comment)
  local words = comment and (". Not sent: %s"):format(comment) or ""
  ui.warn(("Your answer was not taken: %s%s"):format(reason, words))
  ask.sending = nil
  changed()
  if view.ask() == ask then
    view.guard()
  end
end

---@param ask agent_ls.Ask
---@param option agent_ls.PermissionOption
---@param more? {comment?: string, destination?: string}
local function answer(ask, option, more)
  more = more or {}
  local comment = more.comment or ask.comment
  if not find(ask.params.requestId) then
    return not_sent(ask, "the question is not open any more", comment)
  end
  ask.sending = true
  changed()
  client.request("answer", {
    requestId = ask.params.requestId,
    optionId = option.id,
    comment = comment,
    destination = more.destination or option.destination,
    updatedInput = option.kind == "allowOnce" and ask.input or nil,
  }, function(told)
    if told.accepted then
      remove(ask)
    else
      not_sent(ask, told.reason or "the question is not open any more", comment)
    end
  end, function(fault)
    not_sent(ask, fault, comment)
  end)
end

-- Keys

--- For keys of the first step; where a lasting answer is stored is the second.
local function first(action)
  return view.guarded(function(ask)
    if not view.choice() then
      action(ask)
    end
  end)
end

local function rejecting(ask)
  return vim.iter(ask.params.options):find(function(option)
    return option.kind == "rejectOnce"
  end)
end

local function choose(number)
  return view.guarded(function(ask)
    local choice = view.choice()
    if choice then
      local place = text.places(ask.params)[number]
      if place then
        answer(ask, choice.option, { destination = place.destination })
      end
      return
    end
    choice = text.choices(ask.params)[number]
    if not choice or not text.offered(choice, ask) then
      return
    end
    if choice.lasting then
      view.show(ask, queue, choice)
    else
      answer(ask, choice.option)
    end
  end)
end

--- Asks for a line, and nothing that is typed along with it counts for the question.
local function line(prompt, default, on_text)
  vim.ui.input({ prompt = prompt, default = default }, function(typed)
    view.guard()
    if typed then
      on_text(vim.trim(typed))
    end
  end)
end

local reject_with_reason = first(function(ask)
  local option = rejecting(ask)
  if option then
    line("Reject. Why not? (the agent reads this) ", ask.comment, function(typed)
      if typed ~= "" then
        answer(ask, option, { comment = typed })
      end
    end)
  end
end)

local comment = first(function(ask)
  line("Comment, sent along with your answer: ", ask.comment, function(typed)
    ask.comment = typed ~= "" and typed or nil
    if find(ask.params.requestId) then
      redraw()
    elseif typed ~= "" then
      not_sent(ask, "the question is not open any more", typed)
    end
  end)
end)

---@param ask agent_ls.Ask
local function back_to(ask)
  if find(ask.params.requestId) then
    view.show(ask, queue)
    view.focus()
  end
end

local edit = first(function(ask)
  view.hide()
  input.edit(text.who(ask.params.agent), ask.input or ask.params.input, function(value)
    if not find(ask.params.requestId) then
      ui.fail("The question is not open any more: it was answered elsewhere, or its agent has ended")
      return false
    end
    ask.input = value
    return true
  end, function()
    back_to(ask)
  end)
end)

local function go(step)
  return first(function(ask)
    local index = select(2, find(ask.params.requestId))
    if index and #queue > 1 then
      view.show(queue[(index - 1 + step) % #queue + 1], queue)
    end
  end)
end

view.keys(function(buf)
  local function map(key, action, description)
    vim.keymap.set("n", key, action, { buffer = buf, nowait = true, desc = description })
  end
  for number = 1, 9 do
    map(tostring(number), choose(number), "Answer " .. number)
  end
  map("r", reject_with_reason, "Reject and say why")
  map("c", comment, "Comment, sent along with the answer")
  map("e", edit, "Edit the input")
  map(
    "u",
    first(function(ask)
      ask.input = nil
      redraw()
    end),
    "Undo the edit"
  )
  map(
    "b",
    view.guarded(function(ask)
      view.show(ask, queue)
    end),
    "Back to the answers"
  )
  map("<Tab>", go(1), "Next question")
  map("<S-Tab>", go(-1), "Previous question")
  map("q", view.hide, "Decide later")
  -- Nothing is chosen by a key that means something else elsewhere.
  for _, key in ipairs({ "<CR>", "<Esc>", "<Space>" }) do
    map(key, "<Nop>", "Chooses nothing")
  end
end)

--- Opens the oldest question, or the oldest one of an agent.
---@param agent_id? string
function M.open(agent_id)
  local wanted = open_ones():find(function(ask)
    return ask.params.agent.id == agent_id
  end) or open_ones():next()
  if not wanted then
    return ui.note("No agent asks for anything")
  end
  api.nvim_echo({ { "" } }, false, {})
  view.show(wanted, queue)
  view.focus()
end

local group = api.nvim_create_augroup("agent_ls_ask", {})
api.nvim_create_autocmd("VimResized", { group = group, callback = redraw })
api.nvim_create_autocmd("FocusGained", { group = group, callback = view.guard })

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
    view.hide()
    changed()
  end,
})

return M
