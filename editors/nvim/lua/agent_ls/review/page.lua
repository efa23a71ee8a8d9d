--- The review as a whole: read again from the server, and drawn; and what the cursor is on.
local M = {}

local client = require("agent_ls.client")
local ui = require("agent_ls.ui")
local diff = require("agent_ls.review.diff")
local hunks = require("agent_ls.review.hunks")
local list = require("agent_ls.review.list")

local api = vim.api

function M.file_named(view, path)
  return vim.iter(view.review.files):find(function(file)
    return file.path == path
  end)
end

--- The open hunk at the cursor of one of the two texts; a line that was taken away counts for both its neighbours.
local function hunk_at(file, line, new)
  local best, distance = nil, math.huge
  for _, hunk in ipairs(hunks.open(file)) do
    local start, count = hunk.oldStart, hunk.oldLines
    if new then
      start, count = hunk.newStart, hunk.newLines
    end
    local last = start + math.max(count, 1) - 1
    local away = line < start and start - line or line > last and line - last or 0
    if away < distance then
      best, distance = hunk, away
    end
  end
  return distance <= 1 and best or nil
end

function M.at_cursor(view)
  local win = api.nvim_get_current_win()
  if win == view.left or win == view.right then
    local file = view.path and M.file_named(view, view.path)
    return file, file and hunk_at(file, api.nvim_win_get_cursor(win)[1], win == view.right)
  end
  local row = list.at_cursor(view)
  return row and row.file, row and row.hunk
end

--- An answer may come when the user has long closed the review.
function M.is_open(view)
  return vim.iter({ view.list, view.left, view.right }):all(api.nvim_win_is_valid)
end

local function fetch(view, done)
  client.request("review", { agentId = view.info.id }, function(review)
    view.review = review
    view.busy = false
    if M.is_open(view) then
      done()
    end
  end, function(message)
    view.busy = false
    ui.fail(message)
  end)
end

function M.draw(view)
  list.draw(view)
  local file = view.path and M.file_named(view, view.path) or view.review.files[1]
  if file then
    diff.show(view, file)
  else
    diff.clear(view)
  end
end

function M.refresh(view)
  if view.busy then
    return
  end
  view.busy = true
  fetch(view, function()
    view.busy = false
    M.draw(view)
  end)
end

--- Draws the review anew. From a change that is decided now the cursor goes on to the next open one.
function M.finish(view)
  if not M.is_open(view) then
    return ui.note(view.notice, view.level)
  end
  local before = api.nvim_win_get_cursor(view.list)[1]
  local was_open = view.rows[before] and view.rows[before].hunk and view.rows[before].hunk.state == "open"
  fetch(view, function()
    local stayed = api.nvim_win_get_cursor(view.list)[1] == before
    M.draw(view)
    local now = api.nvim_win_get_cursor(view.list)[1]
    local hunk = view.rows[now] and view.rows[now].hunk
    local next_row = list.open_row(view, now) or list.open_row(view, 1)
    if stayed and was_open and hunk and hunk.state ~= "open" and next_row then
      api.nvim_win_set_cursor(view.list, { next_row, 0 })
      view.follow()
    end
    ui.note(view.notice, view.level)
  end)
end

return M
