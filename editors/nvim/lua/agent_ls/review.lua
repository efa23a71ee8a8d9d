--- `:Agent review`: a tab with the changed files above and the file at the cursor below, as it is and as proposed.
---
--- Nothing here is a file: all three buffers are `nofile`, so neither `:w` nor closing accepts anything. What is
--- accepted goes through the server, which edits open buffers by `workspace/applyEdit`; none is written or read again.
local M = {}

local agents = require("agent_ls.agents")
local client = require("agent_ls.client")
local config = require("agent_ls.config")
local ui = require("agent_ls.ui")

local api = vim.api
local namespace = api.nvim_create_namespace("agent_ls_review")

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
---@field shown? string what is drawn of it
---@field undo string[] recovery refs, the newest last
---@field busy boolean
---@field notice? string what came of the last answer
---@field level? integer
---@field follow fun() shows what the cursor of the list is on
---@field back integer the tab to go back to

---@type table<string, agent_ls.ReviewView>
local views = {}

local BUSY = "The last answer is still being worked on"
local MARKS = { open = "[ ]", accepted = "[x]", rejected = "[-]" }

-- Texts

local function without_cr(line)
  return (line:gsub("\r$", ""))
end

--- The user's text as the server reviews it: the open buffer, else the file.
---@return string[] lines, string where
local function current_lines(file)
  local path = vim.uri_to_fname(file.uri)
  local source = path
  if file.oldPath and vim.fn.filereadable(path) ~= 1 then
    source = path:sub(1, #path - #file.path) .. file.oldPath
  end
  local buf = ui.buffer_of_file(source)
  if buf then
    local where = vim.bo[buf].modified and "your buffer, not saved" or "your buffer"
    return vim.tbl_map(without_cr, api.nvim_buf_get_lines(buf, 0, -1, false)), where
  end
  if vim.fn.filereadable(source) ~= 1 then
    return {}, "no such file yet"
  end
  local lines = vim.tbl_map(without_cr, vim.fn.readfile(source))
  if lines[1] then
    lines[1] = lines[1]:gsub("^\239\187\191", "")
  end
  return lines, "the file"
end

--- The lines that a hunk takes away and puts in.
local function sides(hunk)
  local old, new = {}, {}
  for line in hunk.text:gmatch("[^\n]+") do
    local sign, text = line:sub(1, 1), without_cr(line:sub(2))
    if sign == "-" then
      table.insert(old, text)
    elseif sign == "+" then
      table.insert(new, text)
    end
  end
  return old, new
end

local function is_blocked(file, hunk)
  return file.conflict ~= nil and vim.list_contains(file.conflict.hunks, hunk.id)
end

local function can_apply(file, hunk)
  return hunk.state == "open" and not is_blocked(file, hunk)
end

--- The text with all open hunks made; nil when the text is not the one that was reviewed.
---@return string[]?
local function proposed_lines(file, lines)
  local out = vim.list_slice(lines)
  local hunks = vim.tbl_filter(function(hunk)
    return can_apply(file, hunk) and hunk.text ~= ""
  end, file.hunks)
  table.sort(hunks, function(one, other)
    return one.oldStart > other.oldStart
  end)
  for _, hunk in ipairs(hunks) do
    local old, new = sides(hunk)
    local first = hunk.oldLines == 0 and hunk.oldStart + 1 or hunk.oldStart
    if not vim.deep_equal(vim.list_slice(out, first, first + #old - 1), old) then
      return nil
    end
    local after = vim.list_slice(out, first + #old)
    out = vim.list_extend(vim.list_extend(vim.list_slice(out, 1, first - 1), new), after)
  end
  return out
end

-- The list

local function open_hunks(file)
  return vim.tbl_filter(function(hunk)
    return hunk.state == "open"
  end, file.hunks)
end

local function lines_of_hunk(hunk)
  local start, count = hunk.newStart, hunk.newLines
  if hunk.state ~= "open" or count == 0 then
    start, count = hunk.oldStart, hunk.oldLines
  end
  if hunk.text == "" then
    return hunk.header
  end
  local where = count > 1 and ("lines %d-%d"):format(start, start + count - 1) or ("line %d"):format(math.max(start, 1))
  local old, new = sides(hunk)
  local first = new[1] or old[1] or ""
  return ("%s  %s%s"):format(where, new[1] and "+ " or "- ", ui.visible(vim.trim(first)))
end

local function file_rows(file, width)
  local left = #open_hunks(file)
  local state = left == 0 and "decided" or left .. " open"
  local name = file.oldPath and file.oldPath ~= file.path and ("%s (was %s)"):format(file.path, file.oldPath)
    or file.path
  local facts = file.status .. ", " .. state .. (file.needsConfirmation and ", asks first" or "")
  local room = width - #facts - 3
  local rows =
    { { text = ui.pad(ui.visible(name), math.max(room, 10)) .. "  " .. facts, file = file, group = "AgentLsTitle" } }
  local function add(text, group, hunk)
    for _, line in ipairs(ui.wrap(text, width - 1, "      ")) do
      table.insert(rows, { text = line, file = file, hunk = hunk, group = group })
    end
  end
  for _, note in ipairs(file.notes) do
    add("  note: " .. ui.visible(note), "AgentLsDim")
  end
  for _, hunk in ipairs(file.hunks) do
    local blocked = is_blocked(file, hunk)
    local mark = blocked and "[!]" or MARKS[hunk.state] or "[?]"
    local group = blocked and "AgentLsNeedsYou" or hunk.state ~= "open" and "AgentLsDim" or nil
    local text = ui.truncate(("  %s %s"):format(mark, lines_of_hunk(hunk)), width - 1)
    table.insert(rows, { text = text, file = file, hunk = hunk, group = group })
    if blocked then
      add("      conflict: " .. ui.visible(file.conflict.reason), "AgentLsNeedsYou", hunk)
    end
  end
  if file.conflict and #file.conflict.hunks == 0 then
    add("  conflict: " .. ui.visible(file.conflict.reason), "AgentLsNeedsYou")
  end
  return rows
end

local function build_rows(view, width)
  local review = view.review
  local stats = review.stats
  local left = 0
  for _, file in ipairs(review.files) do
    left = left + #open_hunks(file)
  end
  local head = ("%s: %s, +%d -%d, %d open"):format(
    ui.visible(agents.title(view.info)),
    ui.plural(stats.files, "file"),
    stats.insertions,
    stats.deletions,
    left
  )
  local rows = {}
  for _, line in ipairs(ui.wrap(head, width - 1, "  ")) do
    table.insert(rows, { text = line, group = "AgentLsDim" })
  end
  if view.notice then
    for _, line in ipairs(ui.wrap(view.notice, width - 1, "  ")) do
      table.insert(rows, { text = line, group = "AgentLsKey" })
    end
  end
  for _, file in ipairs(review.files) do
    vim.list_extend(rows, file_rows(file, width))
  end
  if #review.files == 0 then
    table.insert(rows, { text = "This agent changed nothing.", group = "AgentLsDim" })
  end
  return rows
end

local function keys(view)
  local parts = { "ga accept" }
  if client.offers("discard") then
    table.insert(parts, "gr reject")
  end
  table.insert(parts, "gA file")
  table.insert(parts, "A all")
  if client.offers("restore") and #view.undo > 0 then
    table.insert(parts, "gu undo")
  end
  table.insert(parts, "g? help")
  return " " .. table.concat(parts, "  ")
end

local function same_row(one, other)
  return one.file ~= nil
    and other.file ~= nil
    and one.file.path == other.file.path
    and (one.hunk and one.hunk.id) == (other.hunk and other.hunk.id)
end

--- As high as its rows, with room left for the texts below; one line is the winbar.
local function fit_list(view)
  local wanted = math.min(#view.rows + 1, math.floor(vim.o.lines * 0.4))
  if api.nvim_win_get_height(view.list) ~= wanted then
    api.nvim_win_set_height(view.list, math.max(wanted, 4))
  end
end

local function draw_list(view)
  local width = api.nvim_win_get_width(view.list)
  local row = api.nvim_win_get_cursor(view.list)[1]
  local at = view.rows[row]
  view.rows = build_rows(view, width)
  ui.set_lines(
    view.bufs.list,
    vim.tbl_map(function(each)
      return each.text
    end, view.rows)
  )
  api.nvim_buf_clear_namespace(view.bufs.list, namespace, 0, -1)
  for index, each in ipairs(view.rows) do
    if each.group then
      api.nvim_buf_set_extmark(view.bufs.list, namespace, index - 1, 0, { line_hl_group = each.group })
    end
  end
  vim.wo[view.list][0].winbar = keys(view)
  fit_list(view)
  for index, each in ipairs(view.rows) do
    if at and same_row(at, each) then
      return api.nvim_win_set_cursor(view.list, { index, 0 })
    end
  end
end

-- The diff

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

local function show_file(view, file)
  local lines, where = current_lines(file)
  local gone = file.status == "deleted"
    and vim.iter(file.hunks):any(function(hunk)
      return hunk.state == "open"
    end)
  local proposal = gone and {} or proposed_lines(file, lines)
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

local function clear_diff(view)
  view.path = nil
  for _, side in ipairs({ "left", "right" }) do
    ui.set_lines(view.bufs[side], {})
    winbar(view[side], side == "left" and "now" or "proposed")
  end
  diff_windows(view, false)
end

local function goto_hunk(view, hunk)
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

-- What the cursor is on

local function at_list(view)
  return view.rows[api.nvim_win_get_cursor(view.list)[1]]
end

local function file_named(view, path)
  return vim.iter(view.review.files):find(function(file)
    return file.path == path
  end)
end

--- The open hunk at the cursor of one of the two texts; a line that was taken away counts for both its neighbours.
local function hunk_at(file, line, new)
  local best, distance = nil, math.huge
  for _, hunk in ipairs(open_hunks(file)) do
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

local function file_and_hunk(view)
  local win = api.nvim_get_current_win()
  if win == view.left or win == view.right then
    local file = view.path and file_named(view, view.path)
    return file, file and hunk_at(file, api.nvim_win_get_cursor(win)[1], win == view.right)
  end
  local row = at_list(view)
  return row and row.file, row and row.hunk
end

-- Asking the server

--- An answer may come when the user has long closed the review.
local function is_open(view)
  return vim.iter({ view.list, view.left, view.right }):all(api.nvim_win_is_valid)
end

local function fetch(view, done)
  client.request("review", { agentId = view.info.id }, function(review)
    view.review = review
    view.busy = false
    if is_open(view) then
      done()
    end
  end, function(message)
    view.busy = false
    ui.fail(message)
  end)
end

local function draw(view)
  draw_list(view)
  local file = view.path and file_named(view, view.path) or view.review.files[1]
  if file then
    show_file(view, file)
  else
    clear_diff(view)
  end
end

local function refresh(view)
  if view.busy then
    return
  end
  view.busy = true
  fetch(view, function()
    view.busy = false
    draw(view)
  end)
end

--- How many of the hunks named were open until now: the server also names those that were there already.
local function newly(view, answered)
  local number = 0
  for _, file in ipairs(answered) do
    local before = file_named(view, file.path)
    for _, hunk in ipairs(before and open_hunks(before) or {}) do
      number = number + (vim.list_contains(file.hunks, hunk.id) and 1 or 0)
    end
  end
  return number
end

--- What came of the last answer: in the list, and as a message once that is drawn.
local function say(view, text, conflicts)
  local told = {}
  for _, conflict in ipairs(conflicts or {}) do
    local reason = conflict.reason:gsub("%.$", "")
    local root = vim.uri_to_fname(view.review.files[1].uri):sub(1, -#view.review.files[1].path - 1)
    reason = reason:gsub(vim.pesc(root), "")
    local part = reason:find(conflict.path, 1, true) and reason or ("%s: %s"):format(conflict.path, reason)
    if not told[part] then
      told[part] = true
      text = ("%s Not accepted: %s."):format(text, part)
    end
  end
  view.notice = text
  view.level = #(conflicts or {}) > 0 and vim.log.levels.WARN or nil
end

local function open_row(view, from)
  for index = from, #view.rows do
    local row = view.rows[index]
    if row.hunk and can_apply(row.file, row.hunk) then
      return index
    end
  end
end

--- Draws the review anew. From a change that is decided now the cursor goes on to the next open one.
local function finish(view)
  if not is_open(view) then
    return ui.note(view.notice, view.level)
  end
  local before = api.nvim_win_get_cursor(view.list)[1]
  local was_open = view.rows[before] and view.rows[before].hunk and view.rows[before].hunk.state == "open"
  fetch(view, function()
    local stayed = api.nvim_win_get_cursor(view.list)[1] == before
    draw(view)
    local now = api.nvim_win_get_cursor(view.list)[1]
    local hunk = view.rows[now] and view.rows[now].hunk
    local next_row = open_row(view, now) or open_row(view, 1)
    if stayed and was_open and hunk and hunk.state ~= "open" and next_row then
      api.nvim_win_set_cursor(view.list, { next_row, 0 })
      view.follow()
    end
    ui.note(view.notice, view.level)
  end)
end

--- One request at a time: an answer that is still under way decides what the next one means.
local function change(view, method, files, report)
  if view.busy then
    return ui.note(BUSY)
  end
  view.busy = true
  local params = { agentId = view.info.id, files = files }
  client.request(method, params, function(result)
    if result.recoverRef then
      table.insert(view.undo, result.recoverRef)
    end
    report(result)
    finish(view)
  end, function(message)
    view.busy = false
    ui.fail(message)
  end)
end

--- A yes or no above the list, so that the diff stays in sight. Only y goes on; for a moment no key counts.
local function ask_yes(view, question, on_yes)
  local width = math.min(math.max(vim.fn.strdisplaywidth(question), 24) + 1, vim.o.columns - 4)
  local lines = vim.list_extend(ui.wrap(question, width), { " y  Yes    n  No" })
  local buf = ui.scratch("agents://question")
  ui.set_lines(buf, lines)
  local back = api.nvim_get_current_win()
  local win = api.nvim_open_win(buf, true, {
    relative = "win",
    win = view.list,
    row = 0,
    col = 1,
    width = width,
    height = #lines,
    style = "minimal",
    border = "single",
    title = " Sure? ",
    zindex = 70,
  })
  local shown = vim.uv.now()
  local function close()
    pcall(api.nvim_win_close, win, true)
    if api.nvim_win_is_valid(back) then
      api.nvim_set_current_win(back)
    end
  end
  local function map(key, action)
    vim.keymap.set("n", key, function()
      if vim.uv.now() - shown >= config.values.guard_ms then
        action()
      end
    end, { buffer = buf, nowait = true })
  end
  map("y", function()
    close()
    on_yes()
  end)
  for _, key in ipairs({ "n", "q", "<Esc>" }) do
    map(key, function()
      close()
      ui.note("Nothing was accepted")
    end)
  end
end

--- Deletions, and what takes the place of a file, are asked for one by one, each with its diff on the screen.
local function confirmed(view, files, action, from)
  for index = from or 1, #files do
    local file = files[index]
    if file.needsConfirmation then
      if view.path ~= file.path then
        show_file(view, file)
      end
      local what = file.status == "deleted" and "Delete %s?" or "Put something else in the place of %s?"
      return ask_yes(view, what:format(ui.visible(file.path)), function()
        confirmed(view, files, action, index + 1)
      end)
    end
  end
  action()
end

local function selection(file, hunk)
  return { path = file.path, hunks = hunk and { hunk.id } or nil }
end

local function accept(view, files, hunk)
  files = vim.tbl_filter(function(file)
    return #open_hunks(file) > 0
  end, files)
  if #files == 0 then
    return ui.note("Nothing is left to accept here")
  end
  confirmed(view, files, function()
    local chosen = vim.tbl_map(function(file)
      return selection(file, hunk)
    end, files)
    change(view, "apply", chosen, function(result)
      if result.failureReason then
        return say(view, result.failureReason)
      end
      local done = newly(view, result.applied)
      say(view, ("Accepted %s, %d left."):format(ui.plural(done, "change"), result.remaining), result.conflicts)
    end)
  end)
end

local function reject(view, files, hunk)
  if not client.offers("discard") then
    return ui.note("This server cannot reject (agent/discard); what you don't accept stays out of your files")
  end
  files = vim.tbl_filter(function(file)
    return #open_hunks(file) > 0
  end, files)
  if #files == 0 then
    return ui.note("Nothing is left to reject here")
  end
  local chosen = vim.tbl_map(function(file)
    return selection(file, hunk)
  end, files)
  change(view, "discard", chosen, function(result)
    local back = client.offers("restore") and " gu brings back." or ""
    say(view, ("Rejected %s.%s"):format(ui.plural(newly(view, result.discarded), "change"), back))
  end)
end

local function undo(view)
  if not client.offers("restore") then
    return ui.note("This server cannot restore (agent/restore); u in a buffer undoes what was accepted there")
  end
  if view.busy then
    return ui.note(BUSY)
  end
  local ref = table.remove(view.undo)
  if not ref then
    return ui.note("Nothing was accepted or rejected here yet")
  end
  view.busy = true
  client.request("restore", { agentId = view.info.id, recoverRef = ref }, function(result)
    say(view, ("Restored %s."):format(ui.plural(#result.restored, "file")), result.conflicts)
    finish(view)
  end, function(message)
    view.busy = false
    table.insert(view.undo, ref)
    ui.fail(message)
  end)
end

local function comment(view)
  if not client.offers("comment") then
    return ui.note("This server takes no comments (agent/comment)")
  end
  local file, hunk = file_and_hunk(view)
  if not file then
    return ui.note("Move to a file or a change first")
  end
  vim.ui.input({ prompt = "Comment for the agent: " }, function(text)
    if not text or not text:match("%S") then
      return
    end
    local row = { path = file.path, hunk = hunk and hunk.id, text = text }
    client.request("comment", { agentId = view.info.id, comments = { row } }, function()
      ui.note("Sent. The agent goes on; review again when it is done")
    end)
  end)
end

-- The tab

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

local function popup(lines, title, groups)
  local width = vim.fn.strdisplaywidth(title)
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.min(width, vim.o.columns - 4)
  local wrapped, colours = {}, {}
  for _, line in ipairs(lines) do
    for _, part in ipairs(ui.wrap(line, width, "       ")) do
      table.insert(wrapped, part)
      table.insert(colours, groups and groups[line:sub(1, 1)] or false)
    end
  end
  local buf = ui.scratch("agents://text")
  ui.set_lines(buf, wrapped)
  for index, group in ipairs(colours) do
    if group then
      api.nvim_buf_set_extmark(buf, namespace, index - 1, 0, { line_hl_group = group })
    end
  end
  local height = math.min(#wrapped, vim.o.lines - 5)
  api.nvim_open_win(buf, true, {
    relative = "editor",
    style = "minimal",
    border = "single",
    title = title,
    width = width,
    height = height,
    row = math.max(math.floor((vim.o.lines - height) / 2) - 1, 0),
    col = math.max(math.floor((vim.o.columns - width) / 2) - 1, 0),
  })
  for _, key in ipairs({ "q", "<Esc>", "<CR>" }) do
    vim.keymap.set("n", key, ui.close_window, { buffer = buf, nowait = true })
  end
end

local function follow_cursor(view)
  local row = is_open(view) and at_list(view)
  if row and row.file then
    if view.path ~= row.file.path then
      show_file(view, row.file)
    end
    if row.hunk then
      goto_hunk(view, row.hunk)
    end
  end
end

local function enter(view)
  local row = at_list(view)
  if not row or not row.file then
    return
  end
  if row.hunk and row.hunk.state ~= "open" then
    local text = vim.split(ui.visible(vim.trim(row.hunk.text), "\t"), "\n", { plain = true })
    local title = (" %s: %s "):format(ui.visible(row.file.path), row.hunk.state)
    return popup(text, title, { ["+"] = "AgentLsAdded", ["-"] = "AgentLsRemoved" })
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
      local file, hunk = file_and_hunk(view)
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
      local file = file_and_hunk(view)
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
  map("ga", "Accept the change", on_hunk(accept))
  map("gr", "Reject the change", on_hunk(reject))
  map("gA", "Accept the file", on_file(accept))
  map("gR", "Reject the file", on_file(reject))
  map("A", "Accept all", on_all(accept))
  map("R", "Reject all", on_all(reject))
  map("gu", "Undo the last answer", function()
    undo(view)
  end)
  map("gc", "Comment to the agent", function()
    comment(view)
  end)
  map("q", "Close the review", function()
    close(view)
  end)
  map("g?", "Help", function()
    popup(HELP, " Help ")
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
        refresh(view)
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
    draw(made)
    made.follow = function()
      follow_cursor(made)
    end
    local row = open_row(made, 1)
    if row then
      api.nvim_win_set_cursor(made.list, { row, 0 })
      made.follow()
    end
    watch(made)
  end)
end

return M
