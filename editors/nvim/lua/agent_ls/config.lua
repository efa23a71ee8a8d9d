--- What the user set. Everything has a default: `setup` need not be called.
local M = {}

---@class agent_ls.Config
---@field cmd string[] how the server is started
---@field env? table<string, string> added to the server's environment
---@field settings table<string, any> the server's own settings, named as in its README
---@field trusted? boolean|fun(root: string): boolean? your word on the folder; nil leaves it to what was said before
---@field guard_ms number how long after a question appears its keys don't count yet
---@field list_height number lines of the window of `:Agent list`

---@type agent_ls.Config
local defaults = {
  cmd = { "agent-ls", "serve" },
  env = nil,
  settings = {},
  trusted = nil,
  guard_ms = 500,
  list_height = 12,
}

local types = {
  cmd = { "table" },
  env = { "table" },
  settings = { "table" },
  trusted = { "boolean", "function" },
  guard_ms = { "number" },
  list_height = { "number" },
}

M.values = vim.deepcopy(defaults)

--- Error names the setting and what it takes.
---@param given? table
function M.set(given)
  for name, value in pairs(given or {}) do
    if not types[name] then
      local known = vim.tbl_keys(types)
      table.sort(known)
      error(("agent_ls: there is no setting %q; there are: %s"):format(name, table.concat(known, ", ")), 0)
    end
    if not vim.list_contains(types[name], type(value)) then
      local wanted = table.concat(types[name], " or a ")
      error(("agent_ls: %s must be a %s, not %s"):format(name, wanted, vim.inspect(value)), 0)
    end
  end
  if given and given.cmd and type(given.cmd[1]) ~= "string" then
    error('agent_ls: cmd must name a program, such as { "agent-ls", "serve" }', 0)
  end
  M.values = vim.tbl_extend("force", vim.deepcopy(defaults), given or {})
end

return M
