--- Keeps what an agent has made in git: as one commit, as its own branch, or merged into yours.

local client = require("agent_ls.client")
local ui = require("agent_ls.ui")

local M = {}

local WAYS = {
  { as = "commit", label = "One commit on a branch" },
  { as = "branch", label = "The agent's own branch, with its history" },
  { as = "merge", label = "Merge into the branch that is checked out" },
}

local function tell(result)
  if #result.conflicts > 0 then
    local lines = { "Nothing was made:" }
    for _, each in ipairs(result.conflicts) do
      table.insert(lines, ("%s: %s"):format(ui.visible(each.path), ui.visible(each.reason)))
    end
    return ui.fail(table.concat(lines, "\n"))
  end
  ui.note(("Kept as %s on the branch %s"):format(result.commit:sub(1, 12), ui.visible(result.branch)))
end

local function send(info, as, branch)
  local given = branch and vim.trim(branch) or ""
  local params = { agentId = info.id, as = as, branch = given ~= "" and given or nil }
  client.request("finish", params, tell, ui.fail)
end

---@param info agent_ls.AgentInfo
function M.open(info)
  if not client.offers("finish") then
    return ui.note("This server cannot do that (agent/finish); use git in " .. info.worktree.path)
  end
  local function label(way)
    return way.label
  end
  vim.ui.select(WAYS, { prompt = "How shall the agent's work be kept?", format_item = label }, function(way)
    if not way then
      return
    end
    if way.as == "merge" then
      return send(info, way.as)
    end
    vim.ui.input({ prompt = "On which branch? (nothing: the usual one) " }, function(branch)
      if branch then
        send(info, way.as, branch)
      end
    end)
  end)
end

return M
