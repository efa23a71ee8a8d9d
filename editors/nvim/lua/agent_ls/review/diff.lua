--- The two windows below: a file as it is, and as proposed.
local M = {}

local ui = require("agent_ls.ui")
local hunks = require("agent_ls.review.hunks")

local api = vim.api

local function language(path, lines)
  local filetype = vim.filetype.match({ filename = path, contents = vim.list_slice(lines, 1, 20) })
  return filetype and vim.treesitter.language.get_lang(filetype) or filetype, filetype
end

--- Colours without a FileType event: no plugin shall take these for files.
local function colour(buf, path, lines)
  local lang, filetype = language(path, lines)
  vim.treesitter.stop(buf)
  if not (lang and pcall(vim.treesitter.start, buf, lang)) then
    vim.bo[buf].syntax = filetype or ""
  end
end

local function unshowable(file)
  if file.binary then
    return "This file is binary and has no lines to show."
  end
  if file.status == "deleted" then
    return nil
  end
  local has_text = vim.iter(file.hunks):any(function(hunk)
    return hunk.text ~= ""
  end)
  if not has_text then
    return "No line changes: see the notes above."
  end
end

local function winbar(win, text)
  vim.wo[win][0].winbar = " " .. ui.truncate(text, api.nvim_win_get_width(win) - 2):gsub("%%", "%%%%")
end

local function diff_windows(view, on)
  for _, win in ipairs({ view.left, view.right }) do
    api.nvim_win_call(win, function()
      vim.cmd(on and "diffthis" or "diffoff")
    end)
    ui.plain_window(win)
    vim.wo[win][0].foldcolumn = "0"
    vim.wo[win][0].foldenable = on
  end
end

function M.show(view, file)
  local lines, where = hunks.current_lines(file)
  local gone = file.status == "deleted"
    and vim.iter(file.hunks):any(function(hunk)
      return hunk.state == "open"
    end)
  local proposal = gone and {} or hunks.proposed_lines(file, lines)
  local reason = unshowable(file)
  view.path = file.path
  local stale = proposal == nil
  if stale then
    proposal = { "Your text has changed since this review was made.", "It is made again as soon as you go on." }
  elseif reason then
    lines, proposal = { reason }, { reason }
  end
  winbar(view.left, ("now: %s (%s)"):format(file.path, where))
  winbar(view.right, (gone and "proposed: deleted: %s" or "proposed: %s"):format(file.path))
  ui.set_lines(view.bufs.left, lines)
  ui.set_lines(view.bufs.right, proposal)
  colour(view.bufs.left, file.path, lines)
  colour(view.bufs.right, file.path, lines)
  diff_windows(view, not stale and not reason)
end

function M.clear(view)
  view.path = nil
  for _, side in ipairs({ "left", "right" }) do
    ui.set_lines(view.bufs[side], {})
    winbar(view[side], side == "left" and "now" or "proposed")
  end
  diff_windows(view, false)
end

function M.go_to(view, hunk)
  if hunk.text == "" or hunk.state ~= "open" then
    return
  end
  local function place(win, line)
    local last = api.nvim_buf_line_count(api.nvim_win_get_buf(win))
    api.nvim_win_call(win, function()
      api.nvim_win_set_cursor(win, { math.min(math.max(line, 1), last), 0 })
      vim.cmd("normal! zvzz")
    end)
  end
  place(view.left, hunk.oldStart)
  place(view.right, hunk.newStart)
end

return M
