--- Small things that all views share: messages that never block, buffers that are never files, text that hides nothing.
local M = {}

local api = vim.api

local highlights = {
  AgentLsNeedsYou = "WarningMsg",
  AgentLsTitle = "Title",
  AgentLsDim = "Comment",
  AgentLsKey = "Special",
  AgentLsRunning = "Function",
  AgentLsDone = "String",
  AgentLsFailed = "ErrorMsg",
  AgentLsAdded = "DiffAdd",
  AgentLsRemoved = "DiffDelete",
  AgentLsHunk = "Special",
}

function M.define_highlights()
  for name, link in pairs(highlights) do
    api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

-- Messages

---@type {text: string, level: integer}[]
local waiting = {}
local scheduled = false

local function uses_default_notify()
  return debug.getinfo(vim.notify, "S").source:find("vim/_editor", 1, true) ~= nil
end

local GROUPS = { [vim.log.levels.ERROR] = "ErrorMsg", [vim.log.levels.WARN] = "WarningMsg" }
local toast ---@type integer?

--- A text that is too long for the command line, in the upper right corner for a while; it takes no keys.
local function show_toast(text, level)
  local width = math.max(math.min(80, vim.o.columns - 4, vim.fn.strdisplaywidth(text)), 10)
  local lines = M.wrap(text, width)
  local buf = M.scratch("agents://message")
  M.set_lines(buf, lines)
  if toast and api.nvim_win_is_valid(toast) then
    api.nvim_win_close(toast, true)
  end
  local win = api.nvim_open_win(buf, false, {
    relative = "editor",
    anchor = "NE",
    row = 1,
    col = vim.o.columns,
    width = width,
    height = math.min(#lines, math.max(vim.o.lines - 6, 1)),
    style = "minimal",
    border = "single",
    focusable = false,
    zindex = 55,
  })
  vim.wo[win][0].winhighlight = "NormalFloat:" .. (GROUPS[level] or "NormalFloat")
  toast = win
  vim.defer_fn(function()
    if api.nvim_win_is_valid(win) then
      api.nvim_win_close(win, true)
    end
  end, 8000)
end

local function say(item)
  if not uses_default_notify() then
    vim.notify(item.text, item.level, { title = "Agents" })
    return
  end
  local text = item.text:gsub("%s*\n%s*", " ")
  local short = M.truncate(text, math.max(vim.v.echospace, 20))
  -- In these modes the next redraw writes the name of the mode over the message.
  local covered = vim.o.showmode and api.nvim_get_mode().mode:match("^[iRvV\22t]")
  if short ~= text or covered and item.level >= vim.log.levels.WARN then
    show_toast(text, item.level)
  end
  vim.cmd.redraw()
  api.nvim_echo({ { short, GROUPS[item.level] } }, true, {})
end

local function flush()
  -- A prompt is up or a command is being typed: a message would scroll it away.
  if api.nvim_get_mode().mode:match("^[cr]") then
    vim.defer_fn(flush, 100)
    return
  end
  scheduled = false
  local items = waiting
  waiting = {}
  for _, item in ipairs(items) do
    say(item)
  end
end

--- One line that never asks for Enter.
---@param text string
---@param level? integer
function M.note(text, level)
  table.insert(waiting, { text = text, level = level or vim.log.levels.INFO })
  if not scheduled then
    scheduled = true
    vim.schedule(flush)
  end
end

function M.warn(text)
  M.note(text, vim.log.levels.WARN)
end

function M.fail(text)
  M.note(text, vim.log.levels.ERROR)
end

-- Text

--- At most `width` cells, with an ellipsis when something is left out.
function M.truncate(text, width)
  if vim.fn.strdisplaywidth(text) <= width then
    return text
  end
  local low, high = 0, vim.fn.strchars(text)
  while low < high do
    local middle = math.floor((low + high + 1) / 2)
    if vim.fn.strdisplaywidth(vim.fn.strcharpart(text, 0, middle)) < width then
      low = middle
    else
      high = middle - 1
    end
  end
  return vim.fn.strcharpart(text, 0, low) .. (width > 0 and "…" or "")
end

--- The same with the ellipsis in the middle: of a path or rule the end matters.
function M.shorten(text, width)
  if vim.fn.strdisplaywidth(text) <= width then
    return text
  end
  local head = M.truncate(text, math.ceil(width * 0.6))
  local room = width - vim.fn.strdisplaywidth(head)
  local count = vim.fn.strchars(text)
  local start = count
  while start > 0 and vim.fn.strdisplaywidth(vim.fn.strcharpart(text, start - 1)) <= room do
    start = start - 1
  end
  return head .. vim.fn.strcharpart(text, start)
end

function M.pad(text, width)
  local short = M.truncate(text, width)
  return short .. (" "):rep(width - vim.fn.strdisplaywidth(short))
end

--- Broken at spaces where possible, further lines indented.
---@return string[]
function M.wrap(text, width, indent)
  indent = indent or ""
  local lines = {}
  local line = ""
  for word, space in text:gmatch("(%S*)(%s*)") do
    while vim.fn.strdisplaywidth(line .. word) > width do
      local start = (#lines > 0 and line == indent) or line == ""
      if start then
        local room = width - vim.fn.strdisplaywidth(line)
        local count = math.max(room, 1)
        while count > 1 and vim.fn.strdisplaywidth(vim.fn.strcharpart(word, 0, count)) > room do
          count = count - 1
        end
        line = line .. vim.fn.strcharpart(word, 0, count)
        word = vim.fn.strcharpart(word, count)
      end
      table.insert(lines, (line:gsub("%s+$", "")))
      line = indent
    end
    line = line .. word .. space
  end
  if line:match("%S") or #lines == 0 then
    table.insert(lines, (line:gsub("%s+$", "")))
  end
  return lines
end

local HIDDEN = {
  { 0x00, 0x1f },
  { 0x7f, 0xa0 },
  { 0xad, 0xad },
  { 0x34f, 0x34f },
  { 0x61c, 0x61c },
  { 0x115f, 0x1160 },
  { 0x17b4, 0x17b5 },
  { 0x180b, 0x180f },
  { 0x2000, 0x200f },
  { 0x2028, 0x202f },
  { 0x205f, 0x206f },
  { 0x3000, 0x3000 },
  { 0x3164, 0x3164 },
  { 0xfe00, 0xfe0f },
  { 0xfeff, 0xfeff },
  { 0xffa0, 0xffa0 },
  { 0xfff0, 0xfffb },
  { 0x1bca0, 0x1bca3 },
  { 0x1d173, 0x1d17a },
  { 0xe0000, 0xe0fff },
}

local function is_hidden(code)
  for _, range in ipairs(HIDDEN) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
  return false
end

--- With every character that a screen hides or reorders as `escape` writes it.
---@param escape fun(code: integer, char: string): string
function M.escape_hidden(text, escape)
  local out = {}
  local starts = vim.str_utf_pos(text)
  for index, start in ipairs(starts) do
    local char = text:sub(start, (starts[index + 1] or #text + 1) - 1)
    local code = vim.fn.char2nr(char)
    table.insert(out, is_hidden(code) and escape(code, char) or char)
  end
  return table.concat(out)
end

--- Characters that a screen hides or reorders are written out, line ends apart; so are long runs of spaces. `keep` is
--- a string of characters to leave as they are.
function M.visible(text, keep)
  local written = M.escape_hidden(text, function(code, char)
    local shown = char == "\n" or (keep and keep:find(char, 1, true))
    return shown and char or (code > 0xffff and "\\U%08x" or "\\u%04x"):format(code)
  end)
  return (written:gsub((" "):rep(9) .. "+", function(run)
    return ("<%d spaces>"):format(#run)
  end))
end

--- 950, 12.3k, 1.2M
function M.count(number)
  if number < 1000 then
    return tostring(number)
  end
  if number < 1e6 then
    return ("%.1fk"):format(number / 1e3)
  end
  return ("%.1fM"):format(number / 1e6)
end

--- 9s, 1m02s, 1h03m
function M.duration(seconds)
  seconds = math.max(math.floor(seconds), 0)
  if seconds < 60 then
    return seconds .. "s"
  end
  if seconds < 3600 then
    return ("%dm%02ds"):format(math.floor(seconds / 60), seconds % 60)
  end
  return ("%dh%02dm"):format(math.floor(seconds / 3600), math.floor(seconds % 3600 / 60))
end

--- Seconds since 1970 of an RFC 3339 time in UTC.
function M.epoch(text)
  local year, month, day, hour, minute, second = (text or ""):match("^(%d+)-(%d+)-(%d+)T(%d+):(%d+):([%d.]+)")
  if not year then
    return nil
  end
  -- Days since 1970-01-01 of the proleptic Gregorian calendar.
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  local days = 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  days = days + math.floor((153 * (month - 3) + 2) / 5) + day - 719469
  return days * 86400 + tonumber(hour) * 3600 + tonumber(minute) * 60 + tonumber(second)
end

function M.plural(number, word)
  return ("%d %s%s"):format(number, word, number == 1 and "" or "s")
end

-- Buffers

--- The buffer with exactly this name; `bufnr()` takes names for patterns.
function M.buffer_named(name)
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    return api.nvim_buf_get_name(buf) == name
  end)
end

--- The loaded buffer of a file, by its path or what a link leads to.
function M.buffer_of_file(path)
  local real = vim.uv.fs_realpath(path)
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    local name = api.nvim_buf_get_name(buf)
    if not api.nvim_buf_is_loaded(buf) or name == "" or vim.bo[buf].buftype ~= "" then
      return false
    end
    return name == path or real ~= nil and vim.uv.fs_realpath(name) == real
  end)
end

--- A buffer that is no file: `:w` has nowhere to write, nothing is swapped, and nobody can type in it.
---@param name string shown as its name; made unique
function M.scratch(name)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].buftype = "nofile"
  vim.bo[buf].swapfile = false
  vim.bo[buf].undolevels = -1
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = "wipe"
  local unique, number = name, 1
  while M.buffer_named(unique) do
    number = number + 1
    unique = ("%s (%d)"):format(name, number)
  end
  pcall(api.nvim_buf_set_name, buf, unique)
  return buf
end

--- Replaces only the lines that differ, so that views and marks stay where they are.
---@param lines string[]
function M.set_lines(buf, lines)
  for index, line in ipairs(lines) do
    if line:find("\n", 1, true) then
      lines[index] = line:gsub("\n", "\\n")
    end
  end
  local old = api.nvim_buf_get_lines(buf, 0, -1, false)
  local head = 0
  while head < #old and head < #lines and old[head + 1] == lines[head + 1] do
    head = head + 1
  end
  local tail = 0
  while tail < #old - head and tail < #lines - head and old[#old - tail] == lines[#lines - tail] do
    tail = tail + 1
  end
  if head == #old and head == #lines then
    return
  end
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, head, #old - tail, false, vim.list_slice(lines, head + 1, #lines - tail))
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
end

--- Windows of the current and other tabs that show the buffer.
function M.windows(buf)
  return vim.fn.win_findbuf(buf)
end

--- Also when it is the last window.
function M.close_window()
  if not pcall(api.nvim_win_close, 0, false) then
    vim.cmd.enew()
  end
end

--- Plain window options for our views.
function M.plain_window(win)
  for option, value in pairs({
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    list = false,
    spell = false,
    wrap = false,
    colorcolumn = "",
    statuscolumn = "",
  }) do
    vim.wo[win][0][option] = value
  end
end

return M
