--- The input of a call as JSON in a tab of its own: `:w` takes it over into the question, which is answered there.
local M = {}

local json = require("agent_ls.permission.json")
local ui = require("agent_ls.ui")

local api = vim.api
local HINT = " :w  use it     :q!  leave it as it was     (neither answers)     %%<%s"

local function take(buf, on_taken)
  local value, fault = json.object(table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n"))
  if not value then
    return ui.fail("Not used, this is no JSON that can run: " .. fault)
  end
  if on_taken(value) then
    vim.bo[buf].modified = false
    vim.schedule(function()
      if api.nvim_buf_is_valid(buf) then
        api.nvim_buf_delete(buf, {})
      end
    end)
  end
end

--- `on_taken` says whether the question still is there; `on_left` is called when the buffer is gone.
---@param name string whose input
---@param value table
---@param on_taken fun(value: table): boolean
---@param on_left fun()
function M.edit(name, value, on_taken, on_left)
  vim.cmd("tabnew")
  local buf = ui.scratch("agents://input")
  api.nvim_win_set_buf(0, buf)
  vim.bo[buf].modifiable = true
  vim.bo[buf].undolevels = vim.o.undolevels
  api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(json.pretty(value), "\n", { plain = true }))
  vim.bo[buf].buftype = "acwrite"
  vim.bo[buf].filetype = "json"
  vim.bo[buf].modified = false
  vim.wo[0][0].winbar = HINT:format(name:gsub("%%", "%%%%"))
  api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buf,
    callback = function()
      take(buf, on_taken)
    end,
  })
  api.nvim_create_autocmd("BufWipeout", { buffer = buf, once = true, callback = vim.schedule_wrap(on_left) })
end

return M
