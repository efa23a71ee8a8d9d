--- JSON that a person can read and change: indented, keys in order, characters that a screen hides written out.
local M = {}

local ui = require("agent_ls.ui")

local function escape(code)
  if code <= 0xffff then
    return ("\\u%04x"):format(code)
  end
  local rest = code - 0x10000
  return ("\\u%04x\\u%04x"):format(0xd800 + math.floor(rest / 0x400), 0xdc00 + rest % 0x400)
end

local function scalar(value)
  return (ui.escape_hidden(vim.json.encode(value):gsub("\\/", "/"), escape))
end

local function entries(value, indent)
  local inner = indent .. "  "
  local found = {}
  if vim.islist(value) then
    for _, each in ipairs(value) do
      table.insert(found, inner .. M.pretty(each, inner))
    end
    return "[", found, "]"
  end
  local names = vim.tbl_keys(value)
  table.sort(names)
  for _, name in ipairs(names) do
    table.insert(found, ("%s%s: %s"):format(inner, scalar(name), M.pretty(value[name], inner)))
  end
  return "{", found, "}"
end

---@param value any as from JSON
---@param indent? string
---@return string
function M.pretty(value, indent)
  indent = indent or ""
  if type(value) ~= "table" then
    return scalar(value)
  end
  if next(value) == nil then
    return getmetatable(value) == getmetatable(vim.empty_dict()) and "{}" or "[]"
  end
  local open, found, close = entries(value, indent)
  return ("%s\n%s\n%s%s"):format(open, table.concat(found, ",\n"), indent, close)
end

--- An object, or what is wrong with the text.
---@param text string
---@return table?, string? fault
function M.object(text)
  local ok, value = pcall(vim.json.decode, text)
  if not ok then
    return nil, (tostring(value):gsub("^.-:%d+: ", ""))
  end
  if type(value) ~= "table" or (vim.islist(value) and getmetatable(value) ~= getmetatable(vim.empty_dict())) then
    return nil, "it must be an object: { ... }"
  end
  return value
end

return M
