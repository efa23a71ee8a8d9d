--- `:Agent review`: a tab with the changed files above and the file at the cursor below, as it is and as proposed.
---
--- Nothing here is a file: all three buffers are `nofile`, so neither `:w` nor closing accepts anything. What is
--- accepted goes through the server, which edits open buffers by `workspace/applyEdit`; none is written or read again.
local M = {}

local agents = require("agent_ls.agents")
local answers = require("agent_ls.review.answers")
local client = require("agent_ls.client")
local diff = require("agent_ls.review.diff")
local floats = require("agent_ls.review.floats")
local list = require("agent_ls.review.list")
local page = require("agent_ls.review.page")
local ui = require("agent_ls.ui")

local api = vim.api

---@class agent_ls.ReviewRow
---@field text string
---@field group? string highlight
---@field file? agent_ls.FileChange
---@field hunk? agent_ls.Hunk

---@class agent_ls.ReviewView
---@field info agent_ls.AgentInfo
---@field review agent_ls.Review
---@field rows agent_ls.ReviewRow[]
---@field tab integer
---@field list integer window of the files
---@field left integer window of the present text
---@field right integer window of the proposal
---@field bufs {list: integer, left: integer, right: integer}
---@field path? string the file that is shown
---@field undo string[] recovery refs, the newest last
---@field busy boolean
---@field notice? string what came of the last answer
---@field level? integer
---@field follow fun() shows what the cursor of the list is on
---@field back integer the tab to go back to

---@type table<string, agent_ls.ReviewView>
local views = {}
local HELP = {
  "ga gr  accept, reject the change at the cursor",
  "gA gR  the whole file",
  "A  R   everything",
  "gu     undo the last answer",
  "gc     comment to the agent, which goes on with it",
  "]c [c  next, previous change",
  "<CR>   in the list: go to the change, or show it",
  "q      close, which decides nothing",
  "u in your own buffer undoes as any other edit.",
}

local function follow_cursor(view)
  local row = page.is_open(view) and list.at_cursor(view)
  if row and row.file then
    if view.path ~= row.file.path then
      diff.show(view, row.file)
    end
    if row.hunk then
      diff.go_to(view, row.hunk)
    end
  end
end

local function enter(view)
  local row = list.at_cursor(view)
  if not row or not row.file then
    return
  end
  if row.hunk and row.hunk.state ~= "open" then
    local text = vim.split(ui.visible(vim.trim(row.hunk.text), "\t"), "\n", { plain = true })
    local title = (" %s: %s "):format(ui.visible(row.file.path), row.hunk.state)
    return floats.text(text, title, { ["+"] = "AgentLsAdded", ["-"] = "AgentLsRemoved" })
  end
  follow_cursor(view)
  api.nvim_set_current_win(view.right)
end

--- The three belong together: closing one closes all, and goes back to where the review was asked for.
local function close(view)
  if views[view.info.id] == view then
    views[view.info.id] = nil
  end
  local was_here = api.nvim_get_current_tabpage() == view.tab
  for _, buf in pairs(view.bufs) do
    if api.nvim_buf_is_valid(buf) then
      pcall(api.nvim_buf_delete, buf, { force = true })
    end
  end
  if was_here and api.nvim_tabpage_is_valid(view.back) then
    api.nvim_set_current_tabpage(view.back)
  end
end

local function map_keys(view)
  local function map(key, description, action)
    for _, buf in pairs(view.bufs) do
      vim.keymap.set("n", key, action, { buffer = buf, nowait = true, desc = description })
    end
  end
  local function on_hunk(action)
    return function()
      local file, hunk = page.at_cursor(view)
      if not file then
        return ui.note("Move to a change first")
      end
      if not hunk and api.nvim_get_current_win() ~= view.list then
        return ui.note("There is no open change at the cursor; ]c goes to the next one")
      end
      if hunk and hunk.state ~= "open" then
        return ui.note(("This change is %s already"):format(hunk.state))
      end
      action(view, { file }, hunk)
    end
  end
  local function on_file(action)
    return function()
      local file = page.at_cursor(view)
      if file then
        action(view, { file })
      else
        ui.note("Move to a file first")
      end
    end
  end
  local function on_all(action)
    return function()
      action(view, view.review.files)
    end
  end
  map("ga", "Accept the change", on_hunk(answers.accept))
  map("gr", "Reject the change", on_hunk(answers.reject))
  map("gA", "Accept the file", on_file(answers.accept))
  map("gR", "Reject the file", on_file(answers.reject))
  map("A", "Accept all", on_all(answers.accept))
  map("R", "Reject all", on_all(answers.reject))
  map("gu", "Undo the last answer", function()
    answers.undo(view)
  end)
  map("gc", "Comment to the agent", function()
    answers.comment(view)
  end)
  map("q", "Close the review", function()
    close(view)
  end)
  map("g?", "Help", function()
    floats.text(HELP, " Help ")
  end)
  vim.keymap.set("n", "<CR>", function()
    enter(view)
  end, { buffer = view.bufs.list, nowait = true, desc = "Go to the change" })
end

local function watch(view)
  api.nvim_create_autocmd("CursorMoved", {
    buffer = view.bufs.list,
    callback = view.follow,
  })
  -- Whatever was typed, undone or written meanwhile: the review is made against it.
  local id = api.nvim_create_autocmd("TabEnter", {
    callback = function()
      if api.nvim_get_current_tabpage() == view.tab then
        page.refresh(view)
      end
    end,
  })
  for _, buf in pairs(view.bufs) do
    api.nvim_create_autocmd("BufWipeout", {
      buffer = buf,
      once = true,
      callback = function()
        pcall(api.nvim_del_autocmd, id)
        vim.schedule(function()
          close(view)
        end)
      end,
    })
  end
end

--- A tab of its own, whatever windows there are: a lone terminal or float is as good as any (D5).
local function build(info, review)
  local back = api.nvim_get_current_tabpage()
  local name = ui.visible(info.name or agents.title(info))
  local view = { info = info, review = review, rows = {}, undo = {}, busy = false, back = back }
  view.bufs = {
    list = ui.scratch("agents://review of " .. name),
    left = ui.scratch("agents://now, " .. name),
    right = ui.scratch("agents://proposed, " .. name),
  }
  vim.cmd("tabnew")
  local empty = api.nvim_get_current_buf()
  vim.bo[empty].bufhidden = "wipe"
  view.tab = api.nvim_get_current_tabpage()
  view.list = api.nvim_get_current_win()
  api.nvim_win_set_buf(view.list, view.bufs.list)
  view.left = api.nvim_open_win(view.bufs.left, false, { split = "below", win = view.list })
  view.right = api.nvim_open_win(view.bufs.right, false, { split = "right", win = view.left })
  for _, win in ipairs({ view.list, view.left, view.right }) do
    ui.plain_window(win)
  end
  -- What goes is red and what comes green; the winbar says all that the status line would.
  vim.wo[view.left][0].winhighlight = "DiffAdd:DiffDelete,DiffDelete:NonText"
  vim.wo[view.right][0].winhighlight = "DiffDelete:NonText"
  for _, win in ipairs({ view.left, view.right }) do
    vim.wo[win][0].statusline = " "
  end
  vim.wo[view.list][0].cursorline = true
  vim.wo[view.list][0].winfixheight = true
  api.nvim_win_set_width(view.left, math.floor(vim.o.columns / 2))
  return view
end

---@param info agent_ls.AgentInfo
function M.open(info)
  if not client.offers("review") then
    return ui.warn("Review in the editor is off: this server does not offer agent/review")
  end
  local view = views[info.id]
  if view and api.nvim_tabpage_is_valid(view.tab) then
    api.nvim_set_current_tabpage(view.tab)
    return
  end
  if not agents.is_reviewable(info) then
    local why = agents.is_live(info) and "it works in your files directly" or "it has no worktree with changes"
    return ui.warn(("Nothing to review of %s: %s"):format(agents.title(info), why))
  end
  client.request("review", { agentId = info.id }, function(review)
    local made = build(info, review)
    views[info.id] = made
    map_keys(made)
    page.draw(made)
    made.follow = function()
      follow_cursor(made)
    end
    local row = list.open_row(made, 1)
    if row then
      api.nvim_win_set_cursor(made.list, { row, 0 })
      made.follow()
    end
    watch(made)
  end)
end

return M
