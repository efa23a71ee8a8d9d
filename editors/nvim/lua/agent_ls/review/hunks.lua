--- What a change is: its lines, and the text with all open ones made.
local M = {}

local ui = require("agent_ls.ui")

local api = vim.api

local function without_cr(line)
  return (line:gsub("\r$", ""))
end

--- The user's text as the server reviews it: the open buffer, else the file.
---@return string[] lines, string where
function M.current_lines(file)
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
function M.sides(hunk)
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

function M.is_blocked(file, hunk)
  return file.conflict ~= nil and vim.list_contains(file.conflict.hunks, hunk.id)
end

function M.can_apply(file, hunk)
  return hunk.state == "open" and not M.is_blocked(file, hunk)
end

function M.open(file)
  return vim.tbl_filter(function(hunk)
    return hunk.state == "open"
  end, file.hunks)
end

--- The text with all open hunks made; nil when the text is not the one that was reviewed.
---@return string[]?
function M.proposed_lines(file, lines)
  local out = vim.list_slice(lines)
  local hunks = vim.tbl_filter(function(hunk)
    return M.can_apply(file, hunk) and hunk.text ~= ""
  end, file.hunks)
  table.sort(hunks, function(one, other)
    return one.oldStart > other.oldStart
  end)
  for _, hunk in ipairs(hunks) do
    local old, new = M.sides(hunk)
    local first = hunk.oldLines == 0 and hunk.oldStart + 1 or hunk.oldStart
    if not vim.deep_equal(vim.list_slice(out, first, first + #old - 1), old) then
      return nil
    end
    local after = vim.list_slice(out, first + #old)
    out = vim.list_extend(vim.list_extend(vim.list_slice(out, 1, first - 1), new), after)
  end
  return out
end

return M
