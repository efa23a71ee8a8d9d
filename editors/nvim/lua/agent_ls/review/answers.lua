--- Accepting, rejecting, taking back and commenting, all by the server.
local M = {}

local client = require("agent_ls.client")
local ui = require("agent_ls.ui")
local diff = require("agent_ls.review.diff")
local floats = require("agent_ls.review.floats")
local hunks = require("agent_ls.review.hunks")
local page = require("agent_ls.review.page")

local BUSY = "The last answer is still being worked on"

--- How many of the hunks named were open until now: the server also names those that were there already.
local function newly(view, answered)
  local number = 0
  for _, file in ipairs(answered) do
    local before = page.file_named(view, file.path)
    for _, hunk in ipairs(before and hunks.open(before) or {}) do
      number = number + (vim.list_contains(file.hunks, hunk.id) and 1 or 0)
    end
  end
  return number
end

--- What came of the last answer: in the list, and as a message once that is drawn.
local function say(view, text, conflicts)
  local told = {}
  for _, conflict in ipairs(conflicts or {}) do
    local reason = conflict.reason:gsub("%.$", "")
    local root = vim.uri_to_fname(view.review.files[1].uri):sub(1, -#view.review.files[1].path - 1)
    reason = reason:gsub(vim.pesc(root), "")
    local part = reason:find(conflict.path, 1, true) and reason or ("%s: %s"):format(conflict.path, reason)
    if not told[part] then
      told[part] = true
      text = ("%s Not accepted: %s."):format(text, part)
    end
  end
  view.notice = text
  view.level = #(conflicts or {}) > 0 and vim.log.levels.WARN or nil
end

--- One request at a time: an answer that is still under way decides what the next one means.
local function change(view, method, files, report)
  if view.busy then
    return ui.note(BUSY)
  end
  view.busy = true
  local params = { agentId = view.info.id, files = files }
  client.request(method, params, function(result)
    if result.recoverRef then
      table.insert(view.undo, result.recoverRef)
    end
    report(result)
    page.finish(view)
  end, function(message)
    view.busy = false
    ui.fail(message)
  end)
end

--- Deletions, and what takes the place of a file, are asked for one by one, each with its diff on the screen.
local function confirmed(view, files, action, from)
  for index = from or 1, #files do
    local file = files[index]
    if file.needsConfirmation then
      if view.path ~= file.path then
        diff.show(view, file)
      end
      local what = file.status == "deleted" and "Delete %s?" or "Put something else in the place of %s?"
      return floats.ask_yes(view, what:format(ui.visible(file.path)), function()
        confirmed(view, files, action, index + 1)
      end)
    end
  end
  action()
end

local function selection(file, hunk)
  return { path = file.path, hunks = hunk and { hunk.id } or nil }
end

function M.accept(view, files, hunk)
  files = vim.tbl_filter(function(file)
    return #hunks.open(file) > 0
  end, files)
  if #files == 0 then
    return ui.note("Nothing is left to accept here")
  end
  confirmed(view, files, function()
    local chosen = vim.tbl_map(function(file)
      return selection(file, hunk)
    end, files)
    change(view, "apply", chosen, function(result)
      if result.failureReason then
        return say(view, result.failureReason)
      end
      local done = newly(view, result.applied)
      say(view, ("Accepted %s, %d left."):format(ui.plural(done, "change"), result.remaining), result.conflicts)
    end)
  end)
end

function M.reject(view, files, hunk)
  if not client.offers("discard") then
    return ui.note("This server cannot reject (agent/discard); what you don't accept stays out of your files")
  end
  files = vim.tbl_filter(function(file)
    return #hunks.open(file) > 0
  end, files)
  if #files == 0 then
    return ui.note("Nothing is left to reject here")
  end
  local chosen = vim.tbl_map(function(file)
    return selection(file, hunk)
  end, files)
  change(view, "discard", chosen, function(result)
    local back = client.offers("restore") and " gu brings back." or ""
    say(view, ("Rejected %s.%s"):format(ui.plural(newly(view, result.discarded), "change"), back))
  end)
end

function M.undo(view)
  if not client.offers("restore") then
    return ui.note("This server cannot restore (agent/restore); u in a buffer undoes what was accepted there")
  end
  if view.busy then
    return ui.note(BUSY)
  end
  local ref = table.remove(view.undo)
  if not ref then
    return ui.note("Nothing was accepted or rejected here yet")
  end
  view.busy = true
  client.request("restore", { agentId = view.info.id, recoverRef = ref }, function(result)
    say(view, ("Restored %s."):format(ui.plural(#result.restored, "file")), result.conflicts)
    page.finish(view)
  end, function(message)
    view.busy = false
    table.insert(view.undo, ref)
    ui.fail(message)
  end)
end

function M.comment(view)
  if not client.offers("comment") then
    return ui.note("This server takes no comments (agent/comment)")
  end
  local file, hunk = page.at_cursor(view)
  if not file then
    return ui.note("Move to a file or a change first")
  end
  vim.ui.input({ prompt = "Comment for the agent: " }, function(text)
    if not text or not text:match("%S") then
      return
    end
    local row = { path = file.path, hunk = hunk and hunk.id, text = text }
    client.request("comment", { agentId = view.info.id, comments = { row } }, function()
      ui.note("Sent. The agent goes on; review again when it is done")
    end)
  end)
end

return M
