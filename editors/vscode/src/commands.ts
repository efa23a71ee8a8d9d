/** The commands "Agent: …" and the code action. A person's word starts all of them, so these may take the focus. */

import * as vscode from "vscode";
import { type AgentNode, type Agents, isBackground, isForeground, isForkable, isLive, isResumable, isReviewable, titleOf } from "./agents";
import { type Connection, Shown } from "./client";
import type { Documents } from "./documents";
import type { Asks } from "./permission";
import type { AgentInfo, FinishParams, SpawnContext, SpawnParams } from "./protocol";
import type { ReviewNode, Reviews } from "./review";
import { message, visible } from "./text";

export interface Parts {
  connection: Connection;
  agents: Agents;
  asks: Asks;
  documents: Documents;
  reviews: Reviews;
}

interface Place extends vscode.QuickPickItem {
  agentType?: string;
  isolation?: "none" | "worktree";
}

const DESCRIPTION = 60;

const WAYS: (vscode.QuickPickItem & { as: FinishParams["as"] })[] = [
  { label: "$(git-commit) One commit", description: "with all its changes, on a branch", as: "commit" },
  { label: "$(git-branch) Its own branch", description: "with its history", as: "branch" },
  { label: "$(git-merge) Merge", description: "into the branch that is checked out", as: "merge" },
];

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { connection, agents, asks, documents, reviews } = parts;
  const register = (name: string, run: (...args: never[]) => unknown): vscode.Disposable =>
    vscode.commands.registerCommand(`agentLs.${name}`, (...args: never[]) => told(() => run(...args)));
  const onHunk = (act: "accept" | "reject") => (node: ReviewNode) =>
    node.kind === "hunk" ? reviews[act]([{ path: node.file.path, hunks: [node.hunk.id] }]) : undefined;
  const onFile = (act: "accept" | "reject") => (node: ReviewNode) => reviews[act]([{ path: node.file.path }]);

  return [
    register("launch", () => launch(parts)),
    register("launchOnSelection", (context?: SpawnContext) => launchOnSelection(parts, context)),
    register("stop", async (node?: AgentNode) => {
      const info = await choose(agents, node, isLive, "Stop which agent?", "No agent is running.");
      if (info) {
        const { agent } = await connection.request("stop", { agentId: info.id });
        agents.record(agent);
      }
    }),
    register("log", async (node?: AgentNode) => {
      const info = await choose(agents, node, () => true, "Show the log of which agent?", "There is no agent yet.");
      if (info) {
        await documents.showTranscript(info.id);
      }
    }),
    register("send", async (node?: AgentNode) => {
      const info = await choose(agents, node, () => true, "Send a message to which agent?", "There is no agent yet.");
      const text = info && (await vscode.window.showInputBox({ title: `To ${titleOf(info)}`, prompt: "It takes the message before its next step." }));
      if (info && text?.trim()) {
        const { agent } = await connection.request("send", { to: info.id, message: text.trim() });
        agents.record(agent);
      }
    }),
    register("background", async (node?: AgentNode) => {
      const none = "No agent is waited for by another one.";
      const info = await choose(agents, node, isForeground, "Send which agent to the background?", none);
      if (info) {
        const { agent } = await connection.request("background", { agentId: info.id });
        agents.record(agent);
      }
    }),
    register("resume", async (node?: AgentNode) => {
      const none = "No agent was interrupted or stopped, and none failed.";
      const info = await choose(agents, node, isResumable, "Resume which agent?", none);
      if (info) {
        const { agent } = await connection.request("resume", { agentId: info.id });
        agents.record(agent);
      }
    }),
    register("fork", async (node?: AgentNode) => {
      const info = await choose(agents, node, isForkable, "Fork which agent?", "No agent has said anything yet.");
      if (info) {
        await fork(parts, info);
      }
    }),
    register("review", async (node?: AgentNode) => {
      const info = await choose(agents, node, isReviewable, "Review which agent?", "No agent has changes to review.");
      if (info) {
        await reviews.open(info.id);
      }
    }),
    register("finish", async (node?: AgentNode) => {
      const info = await choose(agents, node, isReviewable, "Keep the work of which agent?", "No agent has changes to keep.");
      if (info) {
        await finish(parts, info);
      }
    }),
    register("answer", (node?: AgentNode) => asks.open(node?.kind === "ask" ? node.ask.params.requestId : undefined)),
    register("pickAnswer", () => asks.pick()),
    register("key", (key: string) => asks.key(key)),
    register("link", (step: string, key: string) => asks.link(step, key)),
    register("showProposed", (requestId: string) => asks.showProposed(requestId)),
    register("setApiKey", () => setApiKey(parts)),
    register("restart", () => restart(parts)),
    register("refresh", () => agents.fetch()),
    register("acceptHunk", onHunk("accept")),
    register("rejectHunk", onHunk("reject")),
    register("acceptFile", onFile("accept")),
    register("rejectFile", onFile("reject")),
    register("acceptAll", () => reviews.accept()),
    register("rejectAll", () => reviews.reject()),
    register("undo", () => reviews.undo()),
    register("addComment", (reply: vscode.CommentReply) => reviews.comments.add(reply)),
    register("removeComment", (comment: vscode.Comment) => reviews.comments.remove(comment)),
    register("sendComments", () => reviews.sendComments()),
    register("openChanges", () => reviews.openChanges()),
    register("closeReview", () => reviews.close()),
    register("showChange", (node: ReviewNode) => reviews.showChange(node)),
    reviews.onFrozen((uris) => documents.refresh(openOnly(uris))),
    agents.onEnded((info) => void told(() => tellEnd(info, reviews))),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void told(() => (connection.running ? restart(parts) : undefined))),
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, new Delegate(), {
      providedCodeActionKinds: [Delegate.kind],
    }),
  ];
}

/** Runs it, and says what failed. */
async function told(run: () => unknown): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof Shown)) {
      void vscode.window.showErrorMessage(`Agent: ${message(error)}`);
    }
  }
}

async function choose(
  agents: Agents,
  node: AgentNode | undefined,
  fits: (info: AgentInfo) => boolean,
  title: string,
  none: string,
): Promise<AgentInfo | undefined> {
  if (node?.kind === "agent") {
    return agents.get(node.id);
  }
  const found = agents.all().filter(fits);
  if (found.length === 0) {
    void vscode.window.showInformationMessage(none);
    return undefined;
  }
  const items = found.map((info) => ({ label: titleOf(info), description: `${info.agentType}, ${info.status}`, info }));
  return found.length === 1 ? found[0] : (await vscode.window.showQuickPick(items, { title }))?.info;
}

// Launching

async function launch(parts: Parts, context?: SpawnContext): Promise<void> {
  if (!vscode.workspace.workspaceFolders?.length) {
    void vscode.window.showInformationMessage("Open a folder first: an agent works in one.");
    return;
  }
  const prompt = await vscode.window.showInputBox({
    title: context ? "Launch an agent on the selection" : "Launch an agent",
    prompt: "What shall it do?",
    placeHolder: "Make the failing test pass",
    ignoreFocusOut: true,
  });
  if (!prompt?.trim()) {
    return;
  }
  const place = await vscode.window.showQuickPick(places(parts), { title: "Where, and as which agent?", ignoreFocusOut: true });
  if (!place) {
    return;
  }
  const cwd = context ? undefined : await folder();
  const params: SpawnParams = {
    prompt: prompt.trim(),
    description: shortened(prompt.trim()),
    ...(place.agentType ? { agentType: place.agentType } : {}),
    ...(place.isolation ? { isolation: place.isolation } : {}),
    ...(context ? { context } : {}),
    ...(cwd ? { cwd } : {}),
  };
  const { agent } = await parts.connection.request("spawn", params);
  parts.agents.record(agent);
}

/** Another agent that knows all that this one knows. Its parent is told when it ends. */
async function fork({ connection, agents }: Parts, info: AgentInfo): Promise<void> {
  const prompt = await vscode.window.showInputBox({
    title: `Fork ${titleOf(info)}`,
    prompt: "What shall the fork do? It knows all that this agent has read and said.",
    ignoreFocusOut: true,
  });
  if (prompt?.trim()) {
    const task = prompt.trim();
    const params: SpawnParams = { prompt: task, description: shortened(task), fork: true, parentId: info.id };
    const { agent } = await connection.request("spawn", params);
    agents.record(agent);
  }
}

/** What an agent has made, in git. What was rejected is left out. */
async function finish({ connection }: Parts, info: AgentInfo): Promise<void> {
  const way = await vscode.window.showQuickPick(WAYS, { title: `Keep the work of ${titleOf(info)}`, ignoreFocusOut: true });
  if (!way) {
    return;
  }
  const branch = way.as === "merge" ? "" : await vscode.window.showInputBox({ title: "On which branch?", prompt: "Empty: the usual one.", ignoreFocusOut: true });
  if (branch === undefined) {
    return;
  }
  const given = branch.trim() ? { branch: branch.trim() } : {};
  const result = await connection.request("finish", { agentId: info.id, as: way.as, ...given });
  if (result.conflicts.length > 0) {
    const reasons = result.conflicts.map(({ path, reason }) => `${visible(path)}: ${visible(reason)}`);
    void vscode.window.showWarningMessage(`Nothing was made. ${reasons.join(" ")}`);
  } else {
    void vscode.window.showInformationMessage(`Kept as ${result.commit?.slice(0, 12) ?? ""} on the branch ${visible(result.branch ?? "")}.`);
  }
}

/** In a workspace of several folders: that of the open file, else the one that is picked. */
async function folder(): Promise<string | undefined> {
  if ((vscode.workspace.workspaceFolders?.length ?? 0) < 2) {
    return undefined;
  }
  const open = vscode.window.activeTextEditor?.document.uri;
  const found = open && vscode.workspace.getWorkspaceFolder(open);
  const chosen = found ?? (await vscode.window.showWorkspaceFolderPick({ placeHolder: "In which folder shall it work?" }));
  return chosen?.uri.fsPath;
}

function shortened(text: string): string {
  const line = text.split("\n")[0] ?? "";
  return line.length > DESCRIPTION ? `${line.slice(0, DESCRIPTION - 1)}…` : line;
}

/** The two usual places first, then the named agents. */
async function places({ connection }: Parts): Promise<Place[]> {
  const usual: Place[] = [
    { label: "$(git-branch) In a worktree of its own", description: "you review its changes before they reach your files", isolation: "worktree" },
    { label: "$(folder) In this folder", description: "it asks before each edit", isolation: "none" },
  ];
  const { agents } = await connection.request("definitions", {});
  const named = agents
    .filter(({ overridden, name }) => !overridden && name !== "general-purpose")
    .map((each): Place => ({ label: `$(hubot) ${visible(each.name)}`, description: each.source, detail: visible(each.description), agentType: each.name }));
  return named.length > 0 ? [...usual, { label: "Named agents", kind: vscode.QuickPickItemKind.Separator }, ...named] : usual;
}

async function launchOnSelection(parts: Parts, given?: SpawnContext): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const isContext = given !== undefined && typeof given.uri === "string";
  if (!isContext && editor?.document.uri.scheme !== "file") {
    void vscode.window.showInformationMessage("Select text in a file first.");
    return;
  }
  const context = isContext ? given : editor && (await contextOf(parts, editor.document, editor.selection));
  await launch(parts, context);
}

async function contextOf({ connection }: Parts, document: vscode.TextDocument, range: vscode.Range): Promise<SpawnContext> {
  const found = vscode.languages.getDiagnostics(document.uri).filter((each) => each.range.intersection(range) !== undefined);
  const { start } = range;
  // Whole lines end at the beginning of the next one, which is not meant.
  const end = range.end.character === 0 && range.end.line > start.line ? document.lineAt(range.end.line - 1).range.end : range.end;
  return {
    uri: document.uri.toString(),
    range: { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } },
    ...(found.length > 0 ? { diagnostics: await connection.diagnostics(found) } : {}),
  };
}

/** "Delegate to agent" on a selection or a problem. Its command reads both from the editor. */
class Delegate implements vscode.CodeActionProvider {
  static readonly kind = vscode.CodeActionKind.Refactor.append("agent");

  provideCodeActions(_: vscode.TextDocument, range: vscode.Range, context: vscode.CodeActionContext): vscode.CodeAction[] {
    if (range.isEmpty && context.diagnostics.length === 0) {
      return [];
    }
    const what = context.diagnostics.length > 0 ? "this problem" : "the selection";
    const fix = context.diagnostics.length > 0 && !context.only?.contains(Delegate.kind);
    const action = new vscode.CodeAction(`Delegate to agent: ${what}…`, fix ? vscode.CodeActionKind.QuickFix : Delegate.kind);
    action.command = { command: "agentLs.launchOnSelection", title: "Delegate to agent" };
    action.diagnostics = [...context.diagnostics];
    return [action];
  }
}

// The server

async function setApiKey(parts: Parts): Promise<void> {
  const key = await vscode.window.showInputBox({
    title: "API key of the Messages API",
    prompt: "Kept in the secret storage of VS Code. Empty: removed; the environment counts.",
    password: true,
    ignoreFocusOut: true,
  });
  if (key === undefined) {
    return;
  }
  await parts.connection.setApiKey(key.trim());
  if (parts.connection.running) {
    await restart(parts);
  }
}

/** What changed counts after a restart, which ends what runs: so that is asked first. */
async function restart({ connection, agents }: Parts): Promise<void> {
  const running = agents.live().length;
  if (running > 0) {
    const text = `Restarting the agent server ends ${running === 1 ? "a running agent" : `${running} running agents`}.`;
    if ((await vscode.window.showWarningMessage(text, "Restart", "Later")) !== "Restart") {
      return;
    }
  }
  await connection.restart();
}

/** Roots and those in the background: what the other children found, their parents tell. */
async function tellEnd(info: AgentInfo, reviews: Reviews): Promise<void> {
  if (info.depth > 0 && !isBackground(info)) {
    return;
  }
  if (info.status === "failed") {
    await vscode.window.showErrorMessage(`Agent failed: ${titleOf(info)}. ${visible(info.error ?? "")}`);
  } else if (info.status === "completed" && isReviewable(info) && reviews.agentId !== info.id) {
    const chosen = await vscode.window.showInformationMessage(`Agent done: ${titleOf(info)}. Its changes wait for you.`, "Review");
    if (chosen) {
      await reviews.open(info.id);
    }
  }
}

function openOnly(uris: string[]): string[] {
  const open = new Set(vscode.workspace.textDocuments.map(({ uri }) => uri.toString()));
  return uris.map((uri) => vscode.Uri.parse(uri).toString()).filter((uri) => open.has(uri));
}
