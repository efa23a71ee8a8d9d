--- `:checkhealth agent_ls`
local M = {}

local client = require("agent_ls.client")
local config = require("agent_ls.config")

local health = vim.health

local function check_editor()
  health.start("Neovim")
  if vim.fn.has("nvim-0.11") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  else
    health.error("Neovim 0.11 or newer is needed, this is " .. tostring(vim.version()))
  end
  if not jit then
    health.error("This Neovim is built without LuaJIT: questions of agents cannot wait for your answer")
  end
end

local function run(command)
  local env = vim.tbl_extend("force", {}, config.values.env or {})
  local ok, done = pcall(function()
    return vim.system(command, { text = true, timeout = 20000, env = env }):wait()
  end)
  return ok and done or nil
end

local REPORT = { ok = health.ok, warning = health.warn, error = health.error }

local function check_server()
  health.start("Server")
  local cmd = config.values.cmd
  if vim.fn.executable(cmd[1]) ~= 1 then
    health.error(("%q was not found"):format(cmd[1]), {
      "install it as its README says, and put it on PATH",
      "or set cmd: require('agent_ls').setup({ cmd = { '/path/to/agent-ls', 'serve' } })",
    })
    return
  end
  health.ok(("cmd: %s"):format(table.concat(cmd, " ")))
  if cmd[#cmd] ~= "serve" then
    return
  end
  local doctor = vim.list_extend(vim.list_slice(cmd, 1, #cmd - 1), { "doctor" })
  local done = run(doctor)
  if not done then
    return health.warn(table.concat(doctor, " ") .. " could not be run")
  end
  for line in (done.stdout or ""):gmatch("[^\n]+") do
    local word, text = line:match("^(%w+)%s+(.*)$")
    local report = REPORT[word]
    if report then
      report(text)
    else
      health.info(line)
    end
  end
end

local function check_connection()
  health.start("Connection")
  if client.last_fault then
    health.error(client.last_fault, { ":Agent list starts the server again" })
  elseif not client.running() then
    health.info("The server does not run; the first :Agent command starts it")
  else
    local abilities = client.abilities()
    health.ok(("connected, protocol version %s"):format(tostring(abilities.version)))
    health.info("methods: " .. table.concat(abilities.methods or {}, ", "))
    if client.offers("review") then
      health.ok("review in the editor: on")
    else
      health.warn("review in the editor: off (the server does not offer agent/review)")
    end
  end
  local others = vim.tbl_filter(function(each)
    return each.name == "agent_ls" and each ~= client.get()
  end, vim.lsp.get_clients())
  if #others > 0 then
    health.warn("a second client named agent_ls runs", { "don't start the server with vim.lsp.enable as well" })
  end
end

function M.check()
  check_editor()
  check_server()
  check_connection()
end

return M
