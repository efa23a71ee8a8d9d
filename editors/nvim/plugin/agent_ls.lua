-- Defines :Agent. Nothing is loaded until it is used.
if vim.g.loaded_agent_ls then
  return
end
vim.g.loaded_agent_ls = true

vim.api.nvim_create_user_command("Agent", function(args)
  require("agent_ls").command(args)
end, {
  nargs = "*",
  range = true,
  desc = "Launch, watch, answer and review agents",
  complete = function(lead, line, column)
    return require("agent_ls").complete(lead, line, column)
  end,
})
