--- The window above: the changed files and their changes.
local M = {}

local agents = require("agent_ls.agents")
local client = require("agent_ls.client")
local ui = require("agent_ls.ui")
local hunks = require("agent_ls.review.hunks")

local api = vim.api
local namespace = api.nvim_create_namespace("agent_ls_review")
local MARKS = { open = "[ ]", accepted = "[x]", rejected = "[-]" }

local function lines_of_hunk(hunk)
  local start, count = hunk.newStart, hunk.newLines
  if hunk.state ~= "open" or count == 0 then
    start, count = hunk.oldStart, hunk.oldLines
  end
  if hunk.text == "" then
    return hunk.header
  end
  local where = count > 1 and ("lines %d-%d"):format(start, start + count - 1) or ("line %d"):format(math.max(start, 1))
  local old, new = hunks.sides(hunk)
  local first = new[1] or old[1] or ""
  return ("%s  %s%s"):format(where, new[1] and "+ " or "- ", ui.visible(vim.trim(first)))
end

local function file_rows(file, width)
  local left = #hunks.open(file)
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
    local blocked = hunks.is_blocked(file, hunk)
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
    left = left + #hunks.open(file)
  end
  local worktree = view.info.worktree or {}
  local base = worktree.base == "snapshot" and "your files as they were" or review.base.commit:sub(1, 8)
  local head = ("%s: %s, +%d -%d, %d open, since %s"):format(
    ui.visible(agents.title(view.info)),
    ui.plural(stats.files, "file"),
    stats.insertions,
    stats.deletions,
    left,
    base
  )
  if worktree.note then
    head = ("%s. Note: %s"):format(head, ui.visible(worktree.note))
  end
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

function M.draw(view)
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

function M.open_row(view, from)
  for index = from, #view.rows do
    local row = view.rows[index]
    if row.hunk and hunks.can_apply(row.file, row.hunk) then
      return index
    end
  end
end

function M.at_cursor(view)
  return view.rows[api.nvim_win_get_cursor(view.list)[1]]
end

return M
