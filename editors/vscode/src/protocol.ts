// Generated from lsp_server/protocol.py by `python -m tests.tools.vscode_types`; don't edit.
// The names and types of the wire protocol, see protocol.md.

export const VERSION = 1;

/** Requests of the client. */
export const methods = {
  spawn: "agent/spawn",
  list: "agent/list",
  send: "agent/send",
  stop: "agent/stop",
  background: "agent/background",
  resume: "agent/resume",
  conversations: "agent/conversations",
  conversation: "agent/conversation",
  wait: "agent/wait",
  trust: "agent/trust",
  transcript: "agent/transcript",
  definitions: "agent/definitions",
  permissions: "agent/permissions",
  answer: "agent/answer",
  review: "agent/review",
  apply: "agent/apply",
  discard: "agent/discard",
  restore: "agent/restore",
  finish: "agent/finish",
  comment: "agent/comment",
  content: "agent/content",
} as const;

/** Requests of the server. */
export const serverRequests = {
  permission: "agent/permission",
} as const;

/** Notifications of the server. */
export const notifications = {
  progress: "agent/progress",
} as const;

/** What each request takes and gives. */
export interface Calls {
  spawn: { params: SpawnParams; result: AgentResult };
  list: { params: ListParams; result: ListResult };
  send: { params: SendParams; result: AgentResult };
  stop: { params: StopParams; result: AgentResult };
  background: { params: BackgroundParams; result: AgentResult };
  resume: { params: ResumeParams; result: AgentResult };
  conversations: { params: ConversationsParams; result: ConversationsResult };
  conversation: { params: ConversationParams; result: ConversationResult };
  wait: { params: WaitParams; result: AgentResult };
  trust: { params: TrustParams; result: TrustResult };
  transcript: { params: TranscriptParams; result: TranscriptResult };
  definitions: { params: DefinitionsParams; result: DefinitionsResult };
  permissions: { params: PermissionsParams; result: PermissionsResult };
  answer: { params: AnswerParams; result: AnswerResult };
  review: { params: ReviewParams; result: Review };
  apply: { params: ApplyParams; result: ApplyResult };
  discard: { params: DiscardParams; result: DiscardResult };
  restore: { params: RestoreParams; result: RestoreResult };
  finish: { params: FinishParams; result: FinishResult };
  comment: { params: CommentParams; result: AgentResult };
  content: { params: ContentParams; result: ContentResult };
}

export interface Position {
  line: number;
  character: number;
}

export interface Range {
  start: Position;
  end: Position;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheCreationTokens: number;
  toolUses: number;
  turns: number;
  durationMs: number;
  costUsd?: number;
}

export interface WorktreeInfo {
  path: string;
  branch: string;
  baseCommit: string;
  base?: "head" | "snapshot" | "fresh";
  note?: string;
}

export interface AgentInfo {
  id: string;
  rootId: string;
  depth: number;
  agentType: string;
  description: string;
  status: "pending" | "running" | "waiting" | "completed" | "failed" | "stopped" | "interrupted";
  background: boolean;
  fork: boolean;
  isolation: "none" | "worktree" | "remote";
  model: string;
  permissionMode: "default" | "acceptEdits" | "plan" | "dontAsk" | "bypassPermissions" | "bubble";
  cwd: string;
  startedAt: string;
  usage: Usage;
  outputFile: string;
  pendingPermissions: number;
  conversationId: string;
  parentId?: string;
  name?: string;
  stopReason?: "end_turn" | "max_tokens" | "max_turns" | "refusal" | "cancelled";
  worktree?: WorktreeInfo;
  endedAt?: string;
  lastTool?: string;
  result?: string;
  error?: string;
}

export interface AgentResult {
  agent: AgentInfo;
}

export interface SpawnContext {
  uri?: string;
  range?: Range;
  diagnostics?: Record<string, unknown>[];
}

export interface SpawnParams {
  prompt: string;
  description?: string;
  agentType?: string;
  model?: string;
  permissionMode?: "default" | "acceptEdits" | "plan" | "dontAsk" | "bypassPermissions" | "bubble";
  isolation?: "none" | "worktree" | "remote";
  background?: boolean;
  fork?: boolean;
  parentId?: string;
  name?: string;
  teamName?: string;
  cwd?: string;
  maxTurns?: number;
  context?: SpawnContext;
}

export interface ListParams {
  conversationId?: string;
}

export interface ListResult {
  agents: AgentInfo[];
}

export interface SendParams {
  to: string;
  message: string;
}

export interface StopParams {
  agentId: string;
  scope?: "turn" | "agent" | "tree";
}

export interface BackgroundParams {
  agentId: string;
}

export interface ResumeParams {
  agentId: string;
  message?: string;
}

export interface ConversationsParams {
}

export interface Conversation {
  id: string;
  title: string;
  startedAt: string;
  agents: number;
}

export interface ConversationsResult {
  conversations: Conversation[];
}

export interface ConversationParams {
  id?: string;
}

export interface ConversationResult {
  conversation: Conversation;
}

export interface WaitParams {
  agentId: string;
}

export interface TrustParams {
  uri: string;
  trusted: boolean;
}

export interface TrustResult {
  trusted: boolean;
}

export interface TranscriptParams {
  agentId: string;
  afterSeq?: number;
  limit?: number;
}

export interface TranscriptEvent {
  seq: number;
  at: string;
  event: Record<string, unknown>;
}

export interface TranscriptResult {
  events: TranscriptEvent[];
  nextSeq: number;
  complete: boolean;
}

export interface DefinitionsParams {
}

export interface Definition {
  name: string;
  description: string;
  source: "managed" | "cli" | "project" | "user" | "plugin" | "builtin";
  model: string;
  overridden: boolean;
  uri?: string;
  tools?: string[];
  permissionMode?: "default" | "acceptEdits" | "plan" | "dontAsk" | "bypassPermissions" | "bubble";
  isolation?: "none" | "worktree";
  background?: boolean;
  color?: string;
}

export interface Problem {
  uri: string;
  range: Range;
  severity: number;
  message: string;
}

export interface DefinitionsResult {
  agents: Definition[];
  problems: Problem[];
}

export interface ChainLink {
  id: string;
  agentType: string;
  description: string;
}

export interface AskingAgent {
  id: string;
  rootId: string;
  agentType: string;
  description: string;
  chain: ChainLink[];
}

export interface AskedTool {
  name: string;
  kind: "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "other";
  useId: string;
}

export interface PermissionDetail {
  command?: string;
  cwd?: string;
  edit?: Record<string, unknown>;
  diff?: string;
  url?: string;
  server?: string;
}

export interface PermissionOption {
  id: string;
  kind: "allowOnce" | "allowSession" | "allowAlways" | "rejectOnce" | "rejectSession" | "rejectAlways" | "rejectAndStop";
  label: string;
  rule?: string;
  destination?: "session" | "localSettings" | "projectSettings" | "userSettings";
}

export interface DestinationFile {
  destination: "session" | "localSettings" | "projectSettings" | "userSettings";
  path: string;
}

export interface PermissionParams {
  requestId: string;
  agent: AskingAgent;
  tool: AskedTool;
  title: string;
  input: Record<string, unknown>;
  reason: string;
  options: PermissionOption[];
  createdAt: string;
  detail?: PermissionDetail;
  destinations?: ("session" | "localSettings" | "projectSettings" | "userSettings")[];
  destinationFiles?: DestinationFile[];
}

export interface PermissionResult {
  optionId?: string;
  comment?: string;
  updatedInput?: Record<string, unknown>;
  destination?: "session" | "localSettings" | "projectSettings" | "userSettings";
  cancelled?: boolean;
}

export interface PermissionsParams {
}

export interface PermissionsResult {
  requests: PermissionParams[];
}

export interface AnswerParams {
  requestId: string;
  optionId?: string;
  comment?: string;
  updatedInput?: Record<string, unknown>;
  destination?: "session" | "localSettings" | "projectSettings" | "userSettings";
  cancelled?: boolean;
}

export interface AnswerResult {
  accepted: boolean;
  reason?: string;
}

export interface ReviewParams {
  agentId: string;
  round?: "all" | "new";
}

export interface ReviewBase {
  commit: string;
  branch?: string;
}

export interface Hunk {
  id: string;
  oldStart: number;
  oldLines: number;
  newStart: number;
  newLines: number;
  header: string;
  text: string;
  state: "open" | "accepted" | "rejected";
}

export interface FileConflict {
  reason: string;
  hunks: string[];
}

export interface FileChange {
  path: string;
  status: "added" | "modified" | "deleted" | "renamed" | "copied" | "typechange" | "mode";
  binary: boolean;
  uri: string;
  baseUri: string;
  worktreeUri: string;
  hunks: Hunk[];
  notes: string[];
  needsConfirmation: boolean;
  oldPath?: string;
  conflict?: FileConflict;
}

export interface ReviewStats {
  files: number;
  insertions: number;
  deletions: number;
}

export interface Review {
  agentId: string;
  round: "all" | "new";
  base: ReviewBase;
  head: string;
  files: FileChange[];
  stats: ReviewStats;
  worktree?: string;
}

export interface FileSelection {
  path: string;
  hunks?: string[];
}

export interface ApplyParams {
  agentId: string;
  files?: FileSelection[];
  dryRun?: boolean;
}

export interface AppliedFile {
  path: string;
  hunks: string[];
}

export interface ApplyConflict {
  path: string;
  reason: string;
  hunk?: string;
}

export interface ApplyResult {
  applied: AppliedFile[];
  conflicts: ApplyConflict[];
  remaining: number;
  edit?: Record<string, unknown>;
  failureReason?: string;
  recoverRef?: string;
}

export interface DiscardParams {
  agentId: string;
  files?: FileSelection[];
}

export interface DiscardResult {
  discarded: AppliedFile[];
  recoverRef: string;
}

export interface RestoreFile {
  path: string;
}

export interface RestoreParams {
  agentId: string;
  recoverRef: string;
  files?: RestoreFile[];
}

export interface RestoreResult {
  restored: string[];
  conflicts: ApplyConflict[];
}

export interface FinishParams {
  agentId: string;
  as: "commit" | "branch" | "merge";
  message?: string;
  branch?: string;
}

export interface FinishConflict {
  path: string;
  reason: string;
}

export interface FinishResult {
  conflicts: FinishConflict[];
  commit?: string;
  branch?: string;
}

export interface Comment {
  path: string;
  text: string;
  line?: number;
  hunk?: string;
}

export interface CommentParams {
  agentId: string;
  comments: Comment[];
}

export interface ContentParams {
  uri: string;
}

export interface ContentResult {
  text: string;
  languageId?: string;
}

export interface ProgressParams {
  agentId: string;
  rootId: string;
  seq: number;
  at: string;
  event: Record<string, unknown>;
  parentId?: string;
  deltaSeq?: number;
}
