-- Generated from lsp_server/protocol.py by `python -m tests.tools.lua_types`; don't edit.

--- Names and types of the wire protocol, see protocol.md.
local M = {}

M.VERSION = 1

--- Requests of the client.
M.methods = {
  spawn = "agent/spawn",
  list = "agent/list",
  send = "agent/send",
  stop = "agent/stop",
  background = "agent/background",
  resume = "agent/resume",
  conversations = "agent/conversations",
  conversation = "agent/conversation",
  wait = "agent/wait",
  trust = "agent/trust",
  transcript = "agent/transcript",
  definitions = "agent/definitions",
  permissions = "agent/permissions",
  answer = "agent/answer",
  review = "agent/review",
  apply = "agent/apply",
  discard = "agent/discard",
  restore = "agent/restore",
  finish = "agent/finish",
  comment = "agent/comment",
  content = "agent/content",
}

--- Requests of the server.
M.server_requests = {
  permission = "agent/permission",
}

--- Notifications of the server.
M.notifications = {
  progress = "agent/progress",
}

---@class agent_ls.Position
---@field line number
---@field character number

---@class agent_ls.Range
---@field start agent_ls.Position
---@field end agent_ls.Position

---@class agent_ls.Usage
---@field inputTokens number
---@field outputTokens number
---@field cacheReadTokens number
---@field cacheCreationTokens number
---@field toolUses number
---@field turns number
---@field durationMs number
---@field costUsd? number

---@class agent_ls.WorktreeInfo
---@field path string
---@field branch string
---@field baseCommit string
---@field base? "head"|"snapshot"|"fresh"
---@field note? string

---@class agent_ls.AgentInfo
---@field id string
---@field rootId string
---@field depth number
---@field agentType string
---@field description string
---@field status "pending"|"running"|"waiting"|"completed"|"failed"|"stopped"|"interrupted"
---@field background boolean
---@field fork boolean
---@field isolation "none"|"worktree"|"remote"
---@field model string
---@field permissionMode "default"|"acceptEdits"|"plan"|"dontAsk"|"bypassPermissions"|"bubble"
---@field cwd string
---@field startedAt string
---@field usage agent_ls.Usage
---@field outputFile string
---@field pendingPermissions number
---@field conversationId string
---@field parentId? string
---@field name? string
---@field stopReason? "end_turn"|"max_tokens"|"max_turns"|"refusal"|"cancelled"
---@field worktree? agent_ls.WorktreeInfo
---@field endedAt? string
---@field lastTool? string
---@field result? string
---@field error? string

---@class agent_ls.AgentResult
---@field agent agent_ls.AgentInfo

---@class agent_ls.SpawnContext
---@field uri? string
---@field range? agent_ls.Range
---@field diagnostics? table<string, any>[]

---@class agent_ls.SpawnParams
---@field prompt string
---@field description? string
---@field agentType? string
---@field model? string
---@field permissionMode? "default"|"acceptEdits"|"plan"|"dontAsk"|"bypassPermissions"|"bubble"
---@field isolation? "none"|"worktree"|"remote"
---@field background? boolean
---@field fork? boolean
---@field parentId? string
---@field name? string
---@field teamName? string
---@field cwd? string
---@field maxTurns? number
---@field context? agent_ls.SpawnContext

---@class agent_ls.ListParams
---@field conversationId? string

---@class agent_ls.ListResult
---@field agents agent_ls.AgentInfo[]

---@class agent_ls.SendParams
---@field to string
---@field message string

---@class agent_ls.StopParams
---@field agentId string
---@field scope? "turn"|"agent"|"tree"

---@class agent_ls.BackgroundParams
---@field agentId string

---@class agent_ls.ResumeParams
---@field agentId string
---@field message? string

---@class agent_ls.ConversationsParams

---@class agent_ls.Conversation
---@field id string
---@field title string
---@field startedAt string
---@field agents number

---@class agent_ls.ConversationsResult
---@field conversations agent_ls.Conversation[]

---@class agent_ls.ConversationParams
---@field id? string

---@class agent_ls.ConversationResult
---@field conversation agent_ls.Conversation

---@class agent_ls.WaitParams
---@field agentId string

---@class agent_ls.TrustParams
---@field uri string
---@field trusted boolean

---@class agent_ls.TrustResult
---@field trusted boolean

---@class agent_ls.TranscriptParams
---@field agentId string
---@field afterSeq? number
---@field limit? number

---@class agent_ls.TranscriptEvent
---@field seq number
---@field at string
---@field event table<string, any>

---@class agent_ls.TranscriptResult
---@field events agent_ls.TranscriptEvent[]
---@field nextSeq number
---@field complete boolean

---@class agent_ls.DefinitionsParams

---@class agent_ls.Definition
---@field name string
---@field description string
---@field source "managed"|"cli"|"project"|"user"|"plugin"|"builtin"
---@field model string
---@field overridden boolean
---@field uri? string
---@field tools? string[]
---@field permissionMode? "default"|"acceptEdits"|"plan"|"dontAsk"|"bypassPermissions"|"bubble"
---@field isolation? "none"|"worktree"
---@field background? boolean
---@field color? string

---@class agent_ls.Problem
---@field uri string
---@field range agent_ls.Range
---@field severity number
---@field message string

---@class agent_ls.DefinitionsResult
---@field agents agent_ls.Definition[]
---@field problems agent_ls.Problem[]

---@class agent_ls.ChainLink
---@field id string
---@field agentType string
---@field description string

---@class agent_ls.AskingAgent
---@field id string
---@field rootId string
---@field agentType string
---@field description string
---@field chain agent_ls.ChainLink[]

---@class agent_ls.AskedTool
---@field name string
---@field kind "read"|"edit"|"delete"|"move"|"search"|"execute"|"think"|"fetch"|"other"
---@field useId string

---@class agent_ls.PermissionDetail
---@field command? string
---@field cwd? string
---@field edit? table<string, any>
---@field diff? string
---@field url? string
---@field server? string

---@class agent_ls.PermissionOption
---@field id string
---@field kind "allowOnce"|"allowSession"|"allowAlways"|"rejectOnce"|"rejectSession"|"rejectAlways"|"rejectAndStop"
---@field label string
---@field rule? string
---@field destination? "session"|"localSettings"|"projectSettings"|"userSettings"

---@class agent_ls.DestinationFile
---@field destination "session"|"localSettings"|"projectSettings"|"userSettings"
---@field path string

---@class agent_ls.PermissionParams
---@field requestId string
---@field agent agent_ls.AskingAgent
---@field tool agent_ls.AskedTool
---@field title string
---@field input table<string, any>
---@field reason string
---@field options agent_ls.PermissionOption[]
---@field createdAt string
---@field detail? agent_ls.PermissionDetail
---@field destinations? ("session"|"localSettings"|"projectSettings"|"userSettings")[]
---@field destinationFiles? agent_ls.DestinationFile[]

---@class agent_ls.PermissionResult
---@field optionId? string
---@field comment? string
---@field updatedInput? table<string, any>
---@field destination? "session"|"localSettings"|"projectSettings"|"userSettings"
---@field cancelled? boolean

---@class agent_ls.PermissionsParams

---@class agent_ls.PermissionsResult
---@field requests agent_ls.PermissionParams[]

---@class agent_ls.AnswerParams
---@field requestId string
---@field optionId? string
---@field comment? string
---@field updatedInput? table<string, any>
---@field destination? "session"|"localSettings"|"projectSettings"|"userSettings"
---@field cancelled? boolean

---@class agent_ls.AnswerResult
---@field accepted boolean
---@field reason? string

---@class agent_ls.ReviewParams
---@field agentId string
---@field round? "all"|"new"

---@class agent_ls.ReviewBase
---@field commit string
---@field branch? string

---@class agent_ls.Hunk
---@field id string
---@field oldStart number
---@field oldLines number
---@field newStart number
---@field newLines number
---@field header string
---@field text string
---@field state "open"|"accepted"|"rejected"

---@class agent_ls.FileConflict
---@field reason string
---@field hunks string[]

---@class agent_ls.FileChange
---@field path string
---@field status "added"|"modified"|"deleted"|"renamed"|"copied"|"typechange"|"mode"
---@field binary boolean
---@field uri string
---@field baseUri string
---@field worktreeUri string
---@field hunks agent_ls.Hunk[]
---@field notes string[]
---@field needsConfirmation boolean
---@field oldPath? string
---@field conflict? agent_ls.FileConflict

---@class agent_ls.ReviewStats
---@field files number
---@field insertions number
---@field deletions number

---@class agent_ls.Review
---@field agentId string
---@field round "all"|"new"
---@field base agent_ls.ReviewBase
---@field head string
---@field files agent_ls.FileChange[]
---@field stats agent_ls.ReviewStats
---@field worktree? string

---@class agent_ls.FileSelection
---@field path string
---@field hunks? string[]

---@class agent_ls.ApplyParams
---@field agentId string
---@field files? agent_ls.FileSelection[]
---@field dryRun? boolean

---@class agent_ls.AppliedFile
---@field path string
---@field hunks string[]

---@class agent_ls.ApplyConflict
---@field path string
---@field reason string
---@field hunk? string

---@class agent_ls.ApplyResult
---@field applied agent_ls.AppliedFile[]
---@field conflicts agent_ls.ApplyConflict[]
---@field remaining number
---@field edit? table<string, any>
---@field failureReason? string
---@field recoverRef? string

---@class agent_ls.DiscardParams
---@field agentId string
---@field files? agent_ls.FileSelection[]

---@class agent_ls.DiscardResult
---@field discarded agent_ls.AppliedFile[]
---@field recoverRef string

---@class agent_ls.RestoreFile
---@field path string

---@class agent_ls.RestoreParams
---@field agentId string
---@field recoverRef string
---@field files? agent_ls.RestoreFile[]

---@class agent_ls.RestoreResult
---@field restored string[]
---@field conflicts agent_ls.ApplyConflict[]

---@class agent_ls.FinishParams
---@field agentId string
---@field as "commit"|"branch"|"merge"
---@field message? string
---@field branch? string

---@class agent_ls.FinishConflict
---@field path string
---@field reason string

---@class agent_ls.FinishResult
---@field conflicts agent_ls.FinishConflict[]
---@field commit? string
---@field branch? string

---@class agent_ls.Comment
---@field path string
---@field text string
---@field line? number
---@field hunk? string

---@class agent_ls.CommentParams
---@field agentId string
---@field comments agent_ls.Comment[]

---@class agent_ls.ContentParams
---@field uri string

---@class agent_ls.ContentResult
---@field text string
---@field languageId? string

---@class agent_ls.ProgressParams
---@field agentId string
---@field rootId string
---@field seq number
---@field at string
---@field event table<string, any>
---@field parentId? string
---@field deltaSeq? number

return M
