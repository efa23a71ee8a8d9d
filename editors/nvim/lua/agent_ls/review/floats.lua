--- Small windows above the review: a text to read, and a yes or no.
local M = {}

local config = require("agent_ls.config")
local ui = require("agent_ls.ui")

local api = vim.api
local namespace = api.nvim_create_namespace("agent_ls_review_text")

function M.text(lines, title, groups)
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

--- A yes or no above the list, so that the diff stays in sight. Only y goes on; for a moment no key counts.
function M.ask_yes(view, question, on_yes)
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

return M
