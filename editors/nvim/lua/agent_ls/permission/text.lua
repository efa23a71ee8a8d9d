--- The words of a question: who asks, what would happen, the answers and where a lasting one is stored. Draws nothing.
local M = {}

local json = require("agent_ls.permission.json")
local ui = require("agent_ls.ui")

---@class agent_ls.Choice one numbered answer
---@field option agent_ls.PermissionOption
---@field label string
---@field lasting? string it is stored in a file, which is chosen next: what is

---@class agent_ls.Place a file for a lasting answer
---@field destination string
---@field label string

local LASTING = { allowAlways = "Always allow", rejectAlways = "Always reject" }
local SESSION = { allowSession = "allowAlways", rejectSession = "rejectAlways" }
local WHOM = {
  localSettings = "you, in this folder",
  projectSettings = "everybody who works on this project",
  userSettings = "you, in every folder",
}
local OUTCOMES = {
  allowOnce = "allowed once",
  allowSession = "allowed for the session",
  allowAlways = "always allowed",
  rejectOnce = "rejected",
  rejectSession = "rejected for the session",
  rejectAlways = "always rejected",
  rejectAndStop = "rejected, and the agent stopped",
}
local LISTED = 3

function M.who(agent)
  local what = ui.visible(agent.description)
  return what ~= "" and ("%s (%s)"):format(agent.agentType, what) or agent.agentType
end

--- What somebody else decided: "rejected". Nil when nobody chose.
function M.outcome(kind)
  return OUTCOMES[kind]
end

--- The agents whose questions wait behind this one: "2 more wait: Explore (find it), fixer (go)". Nil for none.
---@param queue agent_ls.Ask[]
---@param shown agent_ls.Ask
function M.others(queue, shown)
  local names = {}
  for _, ask in ipairs(queue) do
    if ask ~= shown then
      table.insert(names, M.who(ask.params.agent))
    end
  end
  if #names == 0 then
    return nil
  end
  local listed = table.concat(vim.list_slice(names, 1, LISTED), ", ")
  local rest = #names > LISTED and (" and %d more"):format(#names - LISTED) or ""
  return ("%d more %s: %s%s"):format(#names, #names == 1 and "waits" or "wait", listed, rest)
end

---@param params agent_ls.PermissionParams
---@return agent_ls.Place[]
function M.places(params)
  local files = {}
  for _, file in ipairs(params.destinationFiles or {}) do
    files[file.destination] = file.path
  end
  local found, widest = {}, 0
  for _, destination in ipairs(params.destinations or {}) do
    if files[destination] and WHOM[destination] then
      local path = ui.visible(vim.fn.fnamemodify(files[destination], ":~:."))
      widest = math.max(widest, vim.fn.strdisplaywidth(path))
      table.insert(found, { destination = destination, label = path })
    end
  end
  for _, place in ipairs(found) do
    place.label = ("%s   %s"):format(ui.pad(place.label, widest), WHOM[place.destination])
  end
  return found
end

--- The numbered answers. Where the server offers none for good but has files, the answer for the session can be stored.
---@param params agent_ls.PermissionParams
---@return agent_ls.Choice[]
function M.choices(params)
  local kinds = {}
  for _, option in ipairs(params.options) do
    kinds[option.kind] = true
  end
  local files = #M.places(params) > 0
  local found = {}
  local function add_lasting(option, words)
    local rule = ui.visible(option.rule)
    local label = ("%s, in a file that you choose: %s"):format(words, rule)
    table.insert(found, { option = option, label = label, lasting = ("%s: %s"):format(words, rule) })
  end
  for _, option in ipairs(params.options) do
    local stored = option.rule ~= nil and files
    local always = SESSION[option.kind]
    if stored and LASTING[option.kind] then
      add_lasting(option, LASTING[option.kind])
    else
      table.insert(found, { option = option, label = ui.visible(option.label) })
    end
    if stored and always and not kinds[always] then
      add_lasting(option, LASTING[always])
    end
  end
  return found
end

--- A rule names the agent's input; with one that the person changed nothing is stored.
---@param choice agent_ls.Choice
---@param ask agent_ls.Ask
function M.offered(choice, ask)
  return ask.input == nil or choice.option.rule == nil
end

local function add_wrapped(lines, text, width, indent)
  for _, part in ipairs(vim.split(text, "\n", { plain = true })) do
    vim.list_extend(lines, ui.wrap(part, width, indent))
  end
end

local function size_of(text)
  return ui.plural(#vim.split(text, "\n", { plain = true }), "line")
end

--- What would happen: the command and where, the diff, or the input as it is.
local function detail_lines(params, width)
  local lines, diff_from = {}, nil
  local detail = params.detail or {}
  if detail.command then
    table.insert(lines, "Command:")
    for _, part in ipairs(vim.split(ui.visible(detail.command), "\n", { plain = true })) do
      vim.list_extend(lines, ui.wrap("  " .. part, width, "  "))
    end
    add_wrapped(lines, "Directory: " .. ui.visible(detail.cwd or "unknown"), width, "  ")
  end
  if detail.url then
    add_wrapped(lines, "Address: " .. ui.visible(detail.url), width, "  ")
  end
  if detail.server then
    add_wrapped(lines, "Server: " .. ui.visible(detail.server), width, "  ")
  end
  if detail.diff and detail.diff ~= "" then
    diff_from = #lines + 1
    vim.list_extend(lines, vim.split((ui.visible(detail.diff, "\t"):gsub("\n$", "")), "\n", { plain = true }))
  elseif not detail.command and not detail.url then
    if detail.edit or params.tool.kind == "edit" then
      local text = params.input.content or params.input.new_string or ""
      local path = params.input.file_path or "the file"
      add_wrapped(lines, ("No diff can be shown of %s: %s."):format(ui.visible(path), size_of(text)), width, "  ")
    end
    add_wrapped(lines, "Input:", width)
    add_wrapped(lines, ui.visible(vim.inspect(params.input)), width, "  ")
  end
  return lines, diff_from
end

--- The upper part. `shortened` are answers that stand below in one line only.
---@param ask agent_ls.Ask
---@param others? string
---@param width integer
---@param shortened string[]
---@return string[] lines, {title: integer[], dim: integer[], diff: integer[]} ranges of lines, from 1
function M.body(ask, others, width, shortened)
  local params = ask.params
  local lines, parts = {}, { dim = {} }
  if others then
    add_wrapped(lines, others, width, "  ")
    table.insert(parts.dim, { 1, #lines })
    table.insert(lines, "")
  end
  local from = #lines + 1
  add_wrapped(lines, M.who(params.agent), width, "  ")
  for _, link in ipairs(params.agent.chain) do
    add_wrapped(lines, "  for " .. M.who(link), width, "    ")
  end
  add_wrapped(lines, "asks: " .. ui.visible(params.title), width, "  ")
  parts.title = { from, #lines }
  if params.reason ~= "" then
    from = #lines + 1
    add_wrapped(lines, ui.visible(params.reason), width)
    table.insert(parts.dim, { from, #lines })
  end
  table.insert(lines, "")
  if ask.input then
    table.insert(lines, "Your input, which runs instead:")
    for _, part in ipairs(vim.split(json.pretty(ask.input), "\n", { plain = true })) do
      vim.list_extend(lines, ui.wrap("  " .. ui.visible(part), width, "    "))
    end
    vim.list_extend(lines, { "", "Before your change:" })
  end
  local offset = #lines
  local detail, diff_from = detail_lines(params, width)
  vim.list_extend(lines, detail)
  parts.diff = diff_from and { diff_from + offset, #lines }
  if #shortened > 0 then
    vim.list_extend(lines, { "", "The answers in full:" })
    for _, text in ipairs(shortened) do
      add_wrapped(lines, text, width, "    ")
    end
  end
  return lines, parts
end

---@alias agent_ls.Key {key: string, label: string}

--- Numbered lines, whole when there is room, else shortened; the rest of the keys side by side below.
---@param head string[] lines above, whole
---@param rows agent_ls.Key[]
---@param keys agent_ls.Key[]
---@return string[] lines, string[] shortened, {[1]: integer, [2]: integer, [3]: integer}[] marks row, column, length
local function lower(head, rows, keys, width, room)
  local foot, foot_marks = { "" }, {}
  for _, each in ipairs(keys) do
    local text = ("%s  %s"):format(each.key, each.label)
    local line = foot[#foot]
    if line ~= "" and vim.fn.strdisplaywidth(line .. "   " .. text) > width then
      table.insert(foot, "")
      line = ""
    end
    line = line == "" and " " or line .. "   "
    table.insert(foot_marks, { #foot, #line, #each.key })
    foot[#foot] = line .. text
  end
  local function rows_in(whole)
    local lines, marks, shortened = {}, {}, {}
    for _, row in ipairs(rows) do
      local start = (" %s  "):format(row.key)
      table.insert(marks, { #lines + 1, 1, #row.key })
      local fitting = ui.shorten(row.label, width - #start - 1)
      for number, text in ipairs(whole and ui.wrap(row.label, width - #start - 1) or { fitting }) do
        table.insert(lines, (number == 1 and start or (" "):rep(#start)) .. text)
      end
      if not whole and fitting ~= row.label then
        table.insert(shortened, start .. row.label)
      end
    end
    return lines, marks, shortened
  end
  local lines, marks, shortened = rows_in(true)
  if #head + #lines + #foot > room then
    lines, marks, shortened = rows_in(false)
  end
  for _, mark in ipairs(marks) do
    mark[1] = mark[1] + #head
  end
  for _, mark in ipairs(foot_marks) do
    table.insert(marks, { mark[1] + #head + #lines, mark[2], mark[3] })
  end
  return vim.list_extend(vim.list_extend(vim.list_slice(head), lines), foot), shortened, marks
end

--- The lower part: the answers with their keys.
---@param ask agent_ls.Ask
---@param several boolean there are other questions
function M.answers(ask, several, width, room)
  local rows = {}
  for number, choice in ipairs(M.choices(ask.params)) do
    if M.offered(choice, ask) then
      table.insert(rows, { key = tostring(number), label = choice.label })
    end
  end
  local rejects = vim.iter(ask.params.options):any(function(option)
    return option.kind == "rejectOnce"
  end)
  local keys = rejects and { { key = "r", label = "Reject and say why" } } or {}
  table.insert(keys, { key = "q", label = "Decide later" })
  table.insert(keys, { key = "c", label = ask.comment and "Change the comment" or "Add a comment" })
  table.insert(keys, { key = "e", label = "Edit the input" })
  if ask.input then
    table.insert(keys, { key = "u", label = "Undo the edit" })
  end
  if several then
    table.insert(keys, { key = "Tab", label = "Next question" })
  end
  local head = {}
  if ask.comment then
    add_wrapped(head, " With your comment: " .. ui.visible(ask.comment), width - 1, "   ")
  end
  return lower(head, rows, keys, width, room)
end

--- The lower part of the second step: where a lasting answer is stored.
---@param ask agent_ls.Ask
---@param choice agent_ls.Choice
function M.stores(ask, choice, width, room)
  local rows = {}
  for number, place in ipairs(M.places(ask.params)) do
    table.insert(rows, { key = tostring(number), label = place.label })
  end
  local keys = { { key = "b", label = "Back" }, { key = "q", label = "Decide later" } }
  local head = {}
  add_wrapped(head, " " .. choice.lasting, width - 1, "   ")
  local lines, shortened, marks = lower(head, rows, keys, width, room)
  if #lines <= room then
    return lines, shortened, marks
  end
  lines, shortened, marks = lower({ " " .. ui.shorten(choice.lasting, width - 2) }, rows, keys, width, room)
  return lines, vim.list_extend({ " " .. choice.lasting }, shortened), marks
end

return M
