--- The connection to the server: one for the whole editor, started by the first command, with or without a file open.
---
---   client.request("list", {}, function(result) ... end)   starts the server when it does not run
---   client.offers("discard")                               what this server can do
---   client.listen { progress = f, ready = f, gone = f }    what the views follow
local M = {}

local config = require("agent_ls.config")
local protocol = require("agent_ls.protocol")
local ui = require("agent_ls.ui")

local api = vim.api
local NAME = "agent_ls"

---@class agent_ls.Listener
---@field progress? fun(params: agent_ls.ProgressParams)
---@field ready? fun()
---@field gone? fun(reason: string)

---@type agent_ls.Listener[]
local listeners = {}
---@type vim.lsp.Client?
local client = nil
---@type fun()[]
local when_ready = {}
local stderr_file ---@type string?
local exit_code ---@type string?
local stopping = false
---@type string? why there is no server, once there was one
M.last_fault = nil

---@param listener agent_ls.Listener
function M.listen(listener)
  table.insert(listeners, listener)
end

local function tell(event, ...)
  for _, listener in ipairs(listeners) do
    if listener[event] then
      listener[event](...)
    end
  end
end

function M.running()
  return client ~= nil and client.initialized == true and not client:is_stopped()
end

function M.get()
  return client
end

---@return table the server's `experimental.agent`, empty before it has answered
function M.abilities()
  local experimental = client and client.server_capabilities and client.server_capabilities.experimental
  return experimental and experimental.agent or {}
end

--- Does the server have `agent/<name>`?
function M.offers(name)
  return vim.list_contains(M.abilities().methods or {}, protocol.methods[name] or "agent/" .. name)
end

-- Roots and buffers

--- The folder that counts for a buffer: its repository, else the editor's working directory.
---@param buf? integer
function M.root(buf)
  local cwd = vim.fs.normalize(assert(vim.uv.cwd()))
  buf = buf or api.nvim_get_current_buf()
  local name = api.nvim_buf_get_name(buf)
  if name == "" or vim.bo[buf].buftype ~= "" then
    return cwd
  end
  local folder = vim.fs.dirname(vim.fs.normalize(name))
  return vim.fs.root(folder, ".git") or (M.inside(name, cwd) and cwd) or folder
end

function M.inside(path, folder)
  return vim.fs.relpath(folder, vim.fs.normalize(path)) ~= nil
end

local function folders()
  return vim.tbl_map(function(folder)
    return vim.uri_to_fname(folder.uri)
  end, client and client.workspace_folders or {})
end

local function is_ours(buf)
  if not api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= "" or api.nvim_buf_get_name(buf) == "" then
    return false
  end
  local name = api.nvim_buf_get_name(buf)
  return vim.iter(folders()):any(function(folder)
    return M.inside(name, folder)
  end)
end

local function attach(buf)
  if client and is_ours(buf) then
    vim.lsp.buf_attach_client(buf, client.id)
  end
end

--- Opens a further folder in the server.
function M.add_folder(folder)
  if not client or vim.list_contains(folders(), folder) then
    return
  end
  local added = { uri = vim.uri_from_fname(folder), name = vim.fs.basename(folder) }
  client.workspace_folders = client.workspace_folders or {}
  table.insert(client.workspace_folders, added)
  client:notify("workspace/didChangeWorkspaceFolders", { event = { added = { added }, removed = {} } })
  vim.iter(api.nvim_list_bufs()):each(attach)
end

--- Everything typed so far is told to the server before what follows.
function M.flush()
  for buf in pairs(client and client.attached_buffers or {}) do
    pcall(function()
      require("vim.lsp._changetracking").flush(client, buf)
    end)
  end
end

-- Requests of the server

local function refused(reason)
  return { applied = false, failureReason = reason }
end

local function why_not(change)
  if change.kind then
    return "this plugin does not " .. change.kind .. " files through the editor"
  end
  local buf = vim.uri_to_bufnr(change.textDocument.uri)
  local version = change.textDocument.version
  if not api.nvim_buf_is_loaded(buf) then
    return "it is not open"
  end
  if not vim.bo[buf].modifiable then
    return "the buffer is not modifiable"
  end
  if type(version) == "number" and version ~= vim.lsp.util.buf_versions[buf] then
    return "the text was changed meanwhile"
  end
  local last = change.edits[#change.edits]
  if last and last.range["end"].line >= api.nvim_buf_line_count(buf) and last.newText:match("[^\r\n]$") then
    return "Neovim would add a line end at its end; close it and accept the change again"
  end
  -- Neovim takes CR LF in an edit for one line end.
  for _, edit in ipairs(change.edits) do
    if vim.bo[buf].fileformat == "unix" and edit.newText:find("\r", 1, true) then
      return "its line ends are mixed; set 'fileformat' to dos, or close it"
    end
  end
end

--- Neovim leaves an empty line behind what is put in after the last line: there it goes to the end of that line.
local function placed(buf, edit, encoding)
  local count = api.nvim_buf_line_count(buf)
  if edit.range.start.line < count then
    return edit
  end
  local last = api.nvim_buf_get_lines(buf, count - 1, count, false)[1]
  local place = { line = count - 1, character = vim.str_utfindex(last, encoding) }
  return { range = { start = place, ["end"] = place }, newText = "\n" .. edit.newText:gsub("\r?\n$", "") }
end

--- One step of undo of its own, also while the user types.
local function apply(change, encoding)
  local buf = vim.uri_to_bufnr(change.textDocument.uri)
  local edits = vim.tbl_map(function(edit)
    return placed(buf, edit, encoding)
  end, change.edits)
  api.nvim_buf_call(buf, function()
    vim.cmd("let &g:undolevels = &g:undolevels")
    vim.lsp.util.apply_text_edits(edits, buf, encoding)
    vim.cmd("let &g:undolevels = &g:undolevels")
  end)
end

---@param params {edit: table}
local function apply_edit(_, params, context)
  local source = assert(vim.lsp.get_client_by_id(context.client_id))
  local changes = params.edit.documentChanges or {}
  for uri, edits in pairs(params.edit.changes or {}) do
    table.insert(changes, { textDocument = { uri = uri }, edits = edits })
  end
  for _, change in ipairs(changes) do
    if why_not(change) then
      return refused(why_not(change))
    end
  end
  for _, change in ipairs(changes) do
    local ok, fault = pcall(apply, change, source.offset_encoding)
    if not ok then
      return refused(tostring(fault))
    end
  end
  M.flush()
  return { applied = true }
end

--- The answer may come much later: Neovim runs handlers of requests in coroutines, so this one waits without blocking.
local function permission(_, params)
  local co = coroutine.running()
  local answer
  require("agent_ls.permission").add(params, function(result)
    answer = result
    if coroutine.status(co) == "suspended" then
      coroutine.resume(co)
    end
  end)
  while answer == nil do
    coroutine.yield()
  end
  return answer
end

-- Start and end

local function capabilities()
  local agent = {
    version = protocol.VERSION,
    progress = true,
    textDeltas = true,
    permission = true,
    question = false,
    review = true,
  }
  return { experimental = { agent = agent } }
end

local function trusted(root)
  local value = config.values.trusted
  if type(value) == "function" then
    return value(root)
  end
  return value
end

local function last_line(path)
  local ok, lines = pcall(vim.fn.readfile, path)
  for index = ok and #lines or 0, 1, -1 do
    if lines[index]:match("%S") then
      return vim.trim(lines[index])
    end
  end
end

local function cannot_start(reason)
  M.last_fault = reason
  when_ready = {}
  ui.fail(reason)
end

--- stderr goes to a file of its own: Neovim would write each line of it to lsp.log as an error.
local function command(cmd)
  if vim.fn.has("win32") == 1 then
    return cmd
  end
  local folder = vim.fs.joinpath(vim.fn.stdpath("state"), NAME)
  vim.fn.mkdir(folder, "p")
  stderr_file = vim.fs.joinpath(folder, ("stderr-%d.log"):format(vim.uv.os_getpid()))
  return vim.list_extend({ "sh", "-c", 'exec "$@" 2>"$0"', stderr_file }, cmd)
end

local function on_exit()
  vim.schedule(function()
    client = nil
    when_ready = {}
    local line = stderr_file and last_line(stderr_file)
    if stderr_file then
      os.remove(stderr_file)
    end
    if stopping then
      stopping = false
      tell("gone", "The agent server was stopped.")
      return
    end
    local reason = ("The agent server ended (%s)%s"):format(exit_code or "unknown", line and ": " .. line or "")
    M.last_fault = reason
    tell("gone", reason)
    if vim.v.exiting == vim.NIL then
      ui.fail(reason .. ". :Agent list starts it again")
    end
  end)
end

--- Neovim's own report of an exit is long enough to ask for Enter: the exit is told to it as a clean one.
local function connect(cmd, env)
  return function(dispatchers)
    local told = dispatchers.on_exit
    dispatchers.on_exit = function(code, signal)
      exit_code = signal ~= 0 and "signal " .. signal or "code " .. code
      told(0, 0)
    end
    return vim.lsp.rpc.start(cmd, dispatchers, { env = env })
  end
end

local function ready()
  M.last_fault = nil
  vim.iter(api.nvim_list_bufs()):each(attach)
  if M.abilities().version ~= protocol.VERSION then
    ui.fail("This server does not speak version 1 of the agent protocol; install agent-language-server 0.1 or newer")
    when_ready = {}
    return
  end
  tell("ready")
  local waiting = when_ready
  when_ready = {}
  for _, action in ipairs(waiting) do
    action()
  end
end

local function start(root)
  local cmd = config.values.cmd
  if vim.fn.executable(cmd[1]) ~= 1 then
    local hint = "install agent-language-server, or set cmd in require('agent_ls').setup({ cmd = { ... } })"
    return cannot_start(("%q was not found: %s"):format(cmd[1], hint))
  end
  exit_code, stopping = nil, false
  local id = vim.lsp.start({
    name = NAME,
    cmd = connect(command(cmd), config.values.env),
    root_dir = root,
    capabilities = capabilities(),
    settings = next(config.values.settings) and { agentLs = config.values.settings } or nil,
    init_options = {
      trusted = trusted(root),
      settings = next(config.values.settings) and config.values.settings or vim.empty_dict(),
    },
    handlers = {
      [protocol.notifications.progress] = function(_, params)
        tell("progress", params)
      end,
      [protocol.server_requests.permission] = permission,
      ["workspace/applyEdit"] = apply_edit,
    },
    on_init = ready,
    on_exit = on_exit,
  }, {
    attach = false,
    reuse_client = function()
      return false
    end,
  })
  client = id and vim.lsp.get_client_by_id(id)
  if not client then
    cannot_start("The agent server could not be started with cmd = " .. vim.inspect(cmd))
  end
end

--- Calls `action` when the server is ready; starts it if need be.
---@param action fun()
---@param root? string
function M.with_server(action, root)
  root = root or M.root()
  if M.running() then
    M.add_folder(root)
    return action()
  end
  table.insert(when_ready, function()
    M.add_folder(root)
    action()
  end)
  if not client then
    start(root)
  end
end

--- Ends the server, and with it every agent.
function M.stop()
  if client then
    stopping = true
    client:stop()
  end
end

local function explain(fault)
  local text = fault.message or vim.inspect(fault)
  return (text:gsub("^%s+", ""))
end

---@param name string the part after `agent/`
---@param params table
---@param on_result fun(result: any)
---@param on_error? fun(message: string, code?: string)
function M.request(name, params, on_result, on_error)
  M.with_server(function()
    local method = protocol.methods[name]
    if not method or not M.offers(name) then
      local text = ("This server does not offer agent/%s"):format(name)
      return (on_error or ui.fail)(text)
    end
    M.flush()
    local current = client
    local sent = current
      and current:request(method, next(params) and params or vim.empty_dict(), function(fault, result)
        if fault then
          local code = type(fault.data) == "table" and fault.data.code or nil
          return (on_error or ui.fail)(explain(fault), code)
        end
        on_result(result)
      end, 0)
    if not sent then
      (on_error or ui.fail)("The agent server does not run any more. :Agent list starts it again")
    end
  end)
end

--- Your word on the folder that the server works in.
---@param yes boolean
function M.trust(yes)
  M.with_server(function()
    local root = client and client.config.root_dir
    if not root then
      return ui.fail("The agent server works in no folder")
    end
    M.request("trust", { uri = vim.uri_from_fname(root), trusted = yes }, function(result)
      local text = result.trusted and "Trusted, its own settings count now: %s" or "Not trusted: %s"
      ui.note(text:format(ui.visible(root)))
    end)
  end)
end

local group = api.nvim_create_augroup("agent_ls_client", {})
api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost" }, {
  group = group,
  callback = function(event)
    if M.running() then
      attach(event.buf)
    end
  end,
})

return M
