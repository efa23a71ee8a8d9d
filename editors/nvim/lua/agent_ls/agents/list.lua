--- The buffer of `:Agent list`.
local M = {}

local agents = require("agent_ls.agents")
local config = require("agent_ls.config")
local rows = require("agent_ls.agents.rows")
local ui = require("agent_ls.ui")

local api = vim.api

local view = { buf = nil, timer = nil, rows = {} } ---@type {buf?: integer, timer?: uv.uv_timer_t, rows: table}
local namespace = api.nvim_create_namespace("agent_ls_list")

local function paint(buf, found)
  api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  for index, line in ipairs(found) do
    for _, span in ipairs(line.spans) do
      local stop = math.min(span[2], #line.text)
      api.nvim_buf_set_extmark(buf, namespace, index - 1, span[1], { end_col = stop, hl_group = span[3] })
    end
  end
end

local function row_of(id, found)
  for index, line in ipairs(found) do
    if line.id == id then
      return index
    end
  end
end

local function first_row(found)
  for index, line in ipairs(found) do
    if line.id then
      return index
    end
  end
end

--- The cursor stays on its agent, whatever comes or goes above it.
local function draw()
  local buf = view.buf
  local windows = buf and ui.windows(buf) or {}
  if #windows == 0 then
    return
  end
  local width = api.nvim_win_get_width(windows[1])
  local found = rows.lines(width)
  local kept = {}
  for _, win in ipairs(windows) do
    local cursor = api.nvim_win_get_cursor(win)
    local at = view.rows[cursor[1]]
    kept[win] = { id = at and at.id, column = cursor[2] }
  end
  ui.set_lines(
    buf,
    vim.tbl_map(function(line)
      return (line.text:gsub("%s+$", ""))
    end, found)
  )
  for _, line in ipairs(found) do
    line.text = line.text:gsub("%s+$", "")
    line.spans = vim.tbl_filter(function(span)
      return span[1] < #line.text
    end, line.spans)
  end
  paint(buf, found)
  for win, cursor in pairs(kept) do
    local row = cursor.id and row_of(cursor.id, found) or first_row(found)
    if row then
      api.nvim_win_set_cursor(win, { row, cursor.column })
    end
  end
  view.rows = found
end

local function tick()
  local windows = view.buf and ui.windows(view.buf) or {}
  if #windows > 0 and #agents.all(agents.is_live) > 0 then
    draw()
  end
end

local function close()
  if view.timer then
    view.timer:stop()
    view.timer:close()
  end
  api.nvim_create_augroup("agent_ls_list", {})
  view.timer, view.buf, view.rows = nil, nil, {}
end

local function at_cursor()
  local line = view.rows[api.nvim_win_get_cursor(0)[1]]
  return line and line.id and agents.get(line.id)
end

local function on_agent(action)
  return function()
    local info = at_cursor()
    if info then
      action(info)
    else
      ui.note("Move to an agent first")
    end
  end
end

local KEYS = " <CR> log  r review  s stop  a approve  q close  g? more"
local HELP = {
  "<CR>  log of the agent at the cursor",
  "r     review its changes",
  "s     stop it",
  "a     answer its question",
  "b     send it to the background: the agent above it goes on",
  "R     resume it, when it was interrupted or stopped, or failed",
  "m     send it a message",
  "f     fork it: another agent that knows all that it knows",
  "q     close the list",
}

local function map_keys(buf)
  local function map(key, action, description)
    vim.keymap.set("n", key, action, { buffer = buf, nowait = true, desc = description })
  end
  map(
    "<CR>",
    on_agent(function(info)
      require("agent_ls.log").open(info)
    end),
    "Log of the agent"
  )
  map(
    "r",
    on_agent(function(info)
      require("agent_ls.review").open(info)
    end),
    "Review its changes"
  )
  map("s", on_agent(agents.stop), "Stop the agent")
  map("b", on_agent(agents.background), "Send the agent to the background")
  map("R", on_agent(agents.resume), "Resume the agent")
  map("m", on_agent(agents.send), "Send the agent a message")
  map("f", on_agent(agents.fork), "Fork the agent")
  map("g?", function()
    require("agent_ls.review.floats").text(HELP, " Help ")
  end, "Help")
  map(
    "a",
    on_agent(function(info)
      require("agent_ls.permission").open(info.id)
    end),
    "Answer its question"
  )
  map("q", ui.close_window, "Close the list")
end

--- Opens the list, or goes to it.
function M.open()
  if view.buf and api.nvim_buf_is_valid(view.buf) then
    for _, win in ipairs(ui.windows(view.buf)) do
      if api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage() then
        api.nvim_set_current_win(win)
        return agents.refresh()
      end
    end
  end
  local buf = view.buf
  if not buf or not api.nvim_buf_is_valid(buf) then
    buf = ui.scratch("agents://list")
    view.buf = buf
    map_keys(buf)
    api.nvim_create_autocmd("BufWipeout", { buffer = buf, once = true, callback = close })
    api.nvim_create_autocmd({ "BufWinEnter", "WinResized", "VimResized" }, {
      group = api.nvim_create_augroup("agent_ls_list", {}),
      callback = agents.changed,
    })
    view.timer = assert(vim.uv.new_timer())
    view.timer:start(1000, 1000, vim.schedule_wrap(tick))
  end
  local height = math.max(math.min(config.values.list_height, math.floor(vim.o.lines * 0.4)), 4)
  local win = api.nvim_open_win(buf, true, { split = "below", win = -1, height = height })
  ui.plain_window(win)
  vim.wo[win][0].cursorline = true
  vim.wo[win][0].winfixheight = true
  vim.wo[win][0].winbar = KEYS
  draw()
  agents.refresh()
end

agents.on_changed(draw)

return M
