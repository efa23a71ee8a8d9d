/** All agents, as the server tells of them, and the view that shows them with their open questions. */

import * as vscode from "vscode";
import type { Connection } from "./client";
import type { Ask, Asks } from "./permission";
import type { AgentInfo, WorktreeInfo, ProgressParams, Usage } from "./protocol";
import { count, duration, plural, visible, who } from "./text";

const LIVE = new Set<string>(["pending", "running", "waiting"]);

interface Agent {
  info: AgentInfo;
  /** Titles of the calls under way, by id, the oldest first. */
  tools: Map<string, string>;
  /** What the model has said since its last whole message. */
  saying: string;
  queuePosition: number | undefined;
  /** One line on what it does, where the setting progressSummaries is on. */
  summary: string;
  number: number;
}

export class Agents implements vscode.Disposable {
  private readonly agents = new Map<string, Agent>();
  private readonly changed = new vscode.EventEmitter<string | undefined>();
  private readonly ended = new vscode.EventEmitter<AgentInfo>();
  /** The agent's id, or undefined for all. */
  readonly onChanged = this.changed.event;
  readonly onEnded = this.ended.event;
  private readonly parts: vscode.Disposable[];
  /** Newest first, by parent ("" for roots); made again after a change. */
  private families: Map<string, AgentInfo[]> | undefined;

  constructor(private readonly connection: Connection) {
    this.parts = [
      this.onChanged(() => {
        this.families = undefined;
      }),
      connection.onReady(() => void this.fetch().catch(() => undefined)),
      connection.onGone(() => this.lost()),
      connection.onProgress((params) => this.take(params)),
      this.changed,
      this.ended,
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts).dispose();
  }

  get(id: string): AgentInfo | undefined {
    return this.agents.get(id)?.info;
  }

  saying(id: string): string {
    return this.agents.get(id)?.saying ?? "";
  }

  /** Newest first. */
  all(): AgentInfo[] {
    return this.sorted([...this.agents.values()]).map((agent) => agent.info);
  }

  live(): AgentInfo[] {
    return this.all().filter(isLive);
  }

  /** Newest first. An agent whose parent is unknown counts as a root. */
  roots(): AgentInfo[] {
    return this.family("");
  }

  /** In the order of their start. */
  children(id: string): AgentInfo[] {
    return [...this.family(id)].reverse();
  }

  private family(parent: string): AgentInfo[] {
    if (!this.families) {
      this.families = new Map();
      for (const info of this.all()) {
        const key = info.parentId !== undefined && this.agents.has(info.parentId) ? info.parentId : "";
        this.families.set(key, [...(this.families.get(key) ?? []), info]);
      }
    }
    return this.families.get(parent) ?? [];
  }

  /** What the agent does right now, empty when nothing special. */
  doing(id: string): string {
    const agent = this.agents.get(id);
    if (!agent || !isLive(agent.info)) {
      return "";
    }
    if (agent.queuePosition !== undefined && agent.info.status === "pending") {
      return `place ${agent.queuePosition} in the queue`;
    }
    return agent.summary || ([...agent.tools.values()].at(-1) ?? "");
  }

  async fetch(): Promise<void> {
    const { agents } = await this.connection.request("list", {});
    for (const info of agents) {
      this.record(info);
    }
    this.changed.fire(undefined);
  }

  record(info: AgentInfo): void {
    const known = this.agents.get(info.id);
    if (known) {
      known.info = info;
    } else {
      const number = this.agents.size;
      this.agents.set(info.id, { info, tools: new Map(), saying: "", queuePosition: undefined, summary: "", number });
    }
    this.changed.fire(info.id);
  }

  private sorted(list: Agent[]): Agent[] {
    return list.sort((one, other) => other.info.startedAt.localeCompare(one.info.startedAt) || other.number - one.number);
  }

  /** What ran under the server that ended runs no more; the next one tells how it stands. */
  private lost(): void {
    for (const agent of this.agents.values()) {
      agent.tools.clear();
      agent.saying = "";
      if (isLive(agent.info)) {
        agent.info = { ...agent.info, status: "interrupted", pendingPermissions: 0 };
      }
    }
    this.changed.fire(undefined);
  }

  private take({ agentId, event }: ProgressParams): void {
    if (isAgent(event["agent"])) {
      this.record(event["agent"]);
    }
    const agent = this.agents.get(agentId);
    if (!agent) {
      return;
    }
    switch (event["kind"]) {
      case "status":
        agent.info = {
          ...agent.info,
          status: event["status"] as AgentInfo["status"],
          background: event["background"] as boolean,
        };
        agent.queuePosition = event["queuePosition"] as number | undefined;
        agent.summary = (event["summary"] as string | undefined) ?? agent.summary;
        break;
      case "text":
        agent.saying += String(event["delta"]);
        break;
      case "message":
      case "retry":
        agent.saying = "";
        break;
      case "toolCall":
        agent.tools.set(String(event["toolCallId"]), String(event["title"]));
        break;
      case "toolUpdate":
        if (event["status"] !== "in_progress") {
          agent.tools.delete(String(event["toolCallId"]));
        }
        break;
      case "usage":
        agent.info = { ...agent.info, usage: event["usage"] as Usage };
        break;
      case "ended":
        agent.tools.clear();
        agent.saying = "";
        agent.queuePosition = undefined;
        agent.summary = "";
        this.ended.fire(agent.info);
        break;
    }
    this.changed.fire(agentId);
  }
}

export function isLive(info: AgentInfo): boolean {
  return LIVE.has(info.status);
}

/** Its parent waits for it. */
export function isForeground(info: AgentInfo): boolean {
  return isLive(info) && info.parentId !== undefined && !info.background;
}

/** It works below another agent that does not wait for it. */
export function isBackground(info: AgentInfo): boolean {
  return info.parentId !== undefined && info.background;
}

/** It ended before its work was done. */
export function isResumable(info: AgentInfo): boolean {
  return !isLive(info) && info.status !== "completed";
}

/** It has said something that a fork can go on from. */
export function isForkable(info: AgentInfo): boolean {
  return info.usage.turns > 0;
}

function baseOf({ base, baseCommit }: WorktreeInfo): string {
  return base === "snapshot" ? "your files as they were" : baseCommit.slice(0, 8);
}

/** Changes wait in a worktree of its own. */
export function isReviewable(info: AgentInfo): boolean {
  return info.worktree !== undefined;
}

export function titleOf(info: AgentInfo): string {
  const text = visible(info.description || info.agentType);
  return info.name ? `${visible(info.name)} (${text})` : text;
}

function isAgent(value: unknown): value is AgentInfo {
  return typeof value === "object" && value !== null && "rootId" in value && "startedAt" in value;
}

// The view

export type AgentNode = { kind: "agent"; id: string } | { kind: "ask"; ask: Ask };

const ICONS: Record<AgentInfo["status"], vscode.ThemeIcon> = {
  pending: new vscode.ThemeIcon("clock"),
  running: new vscode.ThemeIcon("loading~spin"),
  waiting: new vscode.ThemeIcon("bell-dot", new vscode.ThemeColor("list.warningForeground")),
  completed: new vscode.ThemeIcon("pass", new vscode.ThemeColor("testing.iconPassed")),
  failed: new vscode.ThemeIcon("error", new vscode.ThemeColor("testing.iconFailed")),
  stopped: new vscode.ThemeIcon("circle-slash"),
  interrupted: new vscode.ThemeIcon("debug-disconnect"),
};
const WORDS: Record<AgentInfo["status"], string> = {
  pending: "queued",
  running: "running",
  waiting: "needs you",
  completed: "done",
  failed: "failed",
  stopped: "stopped",
  interrupted: "interrupted",
};
const DRAW_MS = 100;
const CLOCK_MS = 1000;

/**
 * Questions first, then roots with their descendants. Draws at most ten times a second, and only the rows that changed: a
 * row that is drawn anew under the pointer loses its click.
 */
export class AgentsView implements vscode.TreeDataProvider<AgentNode>, vscode.Disposable {
  private readonly redraw = new vscode.EventEmitter<AgentNode[] | undefined>();
  readonly onDidChangeTreeData = this.redraw.event;
  /** One object for each row, by which the editor knows it. */
  private readonly nodes = new Map<string, AgentNode>();
  /** What each row showed when it was last drawn, in the order of the rows. */
  private drawn = new Map<string, string>();
  private readonly tree: vscode.TreeView<AgentNode>;
  private readonly status = vscode.window.createStatusBarItem("agentLs.status", vscode.StatusBarAlignment.Left, 0);
  private readonly parts: vscode.Disposable[];
  private drawing: NodeJS.Timeout | undefined;
  private readonly clock: NodeJS.Timeout;

  constructor(
    private readonly connection: Connection,
    private readonly agents: Agents,
    private readonly asks: Asks,
  ) {
    this.tree = vscode.window.createTreeView<AgentNode>("agentLs.agents", { treeDataProvider: this, showCollapseAll: false });
    this.status.name = "Agents";
    const soon = (): void => this.soon();
    this.clock = setInterval(() => {
      if (this.tree.visible && this.agents.live().length > 0) {
        soon();
      }
    }, CLOCK_MS);
    const begin = ({ visible: shown }: { visible: boolean }): void => {
      if (shown && !connection.running && connection.fault === undefined) {
        void connection.start().catch(() => undefined);
      }
    };
    this.parts = [
      this.tree,
      this.status,
      this.redraw,
      this.tree.onDidChangeVisibility(begin),
      agents.onChanged(soon),
      asks.onChanged(soon),
      connection.onReady(soon),
      connection.onGone(soon),
    ];
    begin(this.tree);
    this.draw();
  }

  dispose(): void {
    clearInterval(this.clock);
    clearTimeout(this.drawing);
    vscode.Disposable.from(...this.parts).dispose();
  }

  getChildren(node?: AgentNode): AgentNode[] {
    if (node?.kind === "ask") {
      return [];
    }
    const infos = node ? this.agents.children(node.id) : this.agents.roots();
    const asks = node ? [] : this.asks.all().map((ask) => this.node(`ask:${ask.params.requestId}`, { kind: "ask", ask }));
    return [...asks, ...infos.map(({ id }) => this.node(`agent:${id}`, { kind: "agent", id }))];
  }

  private node(key: string, fresh: AgentNode): AgentNode {
    const known = this.nodes.get(key) ?? fresh;
    this.nodes.set(key, known);
    return known;
  }

  getTreeItem(node: AgentNode): vscode.TreeItem {
    return node.kind === "ask" ? this.askItem(node.ask) : this.agentItem(node.id);
  }

  private askItem({ params }: Ask): vscode.TreeItem {
    const item = new vscode.TreeItem(`Asks: ${visible(params.title)}`, vscode.TreeItemCollapsibleState.None);
    item.id = `ask:${params.requestId}`;
    item.contextValue = "ask";
    item.iconPath = ICONS.waiting;
    item.description = visible(params.agent.description || params.agent.agentType);
    const chain = params.agent.chain.map((link) => `for ${who(link)}`);
    item.tooltip = [`${who(params.agent)} asks: ${visible(params.title)}`, ...chain, "Nothing happens until you answer."].join("\n");
    item.command = { command: "agentLs.answer", title: "Answer…", arguments: [{ kind: "ask", ask: { params } }] };
    item.accessibilityInformation = { label: `${who(params.agent)} needs you: ${visible(params.title)}` };
    return item;
  }

  private agentItem(id: string): vscode.TreeItem {
    const info = this.agents.get(id);
    if (!info) {
      return new vscode.TreeItem("");
    }
    const parent = this.agents.children(id).length > 0;
    const { None, Expanded } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(titleOf(info), parent ? Expanded : None);
    // An item keeps the state that it first had: one that gets children becomes another.
    item.id = `agent:${id}:${parent ? "parent" : "leaf"}`;
    const asks = this.asks.of(id) > 0;
    const status = asks ? "waiting" : info.status === "waiting" ? "running" : info.status;
    item.iconPath = ICONS[status];
    const abilities = { reviewable: isReviewable, foreground: isForeground, resumable: isResumable, forkable: isForkable };
    const able = Object.entries(abilities).flatMap(([name, fits]) => (fits(info) ? [name] : []));
    item.contextValue = ["agent", isLive(info) ? "live" : "ended", ...able].join(" ");
    const doing = visible(this.agents.doing(id));
    const background = isBackground(info) ? "background" : "";
    const word = status === "running" && (doing || background) ? "" : WORDS[status];
    const type = info.agentType === "general-purpose" ? "" : visible(info.agentType);
    const facts = [word, background, doing, type, elapsed(info), tokens(info.usage)];
    item.description = facts.filter((fact) => fact !== "").join(" · ");
    item.tooltip = this.tooltip(info, WORDS[status], doing);
    item.command = { command: "agentLs.log", title: "Show Log", arguments: [{ kind: "agent", id }] };
    item.accessibilityInformation = { label: `${titleOf(info)}, ${item.description}` };
    return item;
  }

  private tooltip(info: AgentInfo, word: string, doing: string): string {
    const { usage } = info;
    const read = plural(usage.inputTokens + usage.cacheReadTokens + usage.cacheCreationTokens, "token");
    return [
      `${titleOf(info)}: ${word}`,
      doing && `Now: ${doing}`,
      isBackground(info) && "In the background: the agent above it does not wait for it",
      `Type: ${info.agentType}, ${info.model}, mode ${info.permissionMode}`,
      info.worktree ? `Worktree: ${info.worktree.path}, from ${baseOf(info.worktree)}` : `Folder: ${info.cwd}`,
      info.worktree?.note && `Note: ${visible(info.worktree.note)}`,
      `${plural(usage.turns, "turn")}, ${plural(usage.toolUses, "tool use")}, ${elapsed(info)}`,
      `${read} read (${share(usage)} from the cache), ${count(usage.outputTokens)} written`,
      info.error && `Error: ${visible(info.error)}`,
      info.result && `\n${visible(info.result.slice(0, 500), "\n")}`,
    ]
      .filter((line) => line)
      .join("\n");
  }

  private soon(): void {
    this.drawing ??= setTimeout(() => {
      this.drawing = undefined;
      this.draw();
    }, DRAW_MS);
  }

  private rows(nodes = this.getChildren()): [AgentNode, vscode.TreeItem][] {
    return nodes.flatMap((node) => [[node, this.getTreeItem(node)], ...this.rows(this.getChildren(node))]);
  }

  private drawTree(): void {
    const before = this.drawn;
    const rows = this.rows();
    this.drawn = new Map(rows.map(([, item]) => [item.id ?? "", JSON.stringify(item)]));
    const same = [...this.drawn.keys()].join() === [...before.keys()].join();
    const changed = rows.filter(([, { id = "" }]) => this.drawn.get(id) !== before.get(id));
    if (!same) {
      const kept = new Set(rows.map(([node]) => node));
      this.nodes.forEach((node, key) => !kept.has(node) && this.nodes.delete(key));
    }
    if (!same || changed.length > 0) {
      this.redraw.fire(same ? changed.map(([node]) => node) : undefined);
    }
  }

  private draw(): void {
    this.drawTree();
    const asks = this.asks.all();
    const need = asks.length === 1 ? "1 needs you" : `${asks.length} need you`;
    this.tree.badge = asks.length > 0 ? { value: asks.length, tooltip: `Agents: ${need}` } : undefined;
    const running = this.agents.live().length;
    const fault = this.connection.fault;
    const parts = [asks.length > 0 ? need : "", running > 0 ? `${running} running` : "", fault ? "no server" : ""];
    const icon = asks.length > 0 ? "bell-dot" : fault ? "warning" : running > 0 ? "loading~spin" : "hubot";
    this.status.text = `$(${icon}) ${["Agents", parts.filter((part) => part).join(", ")].filter((part) => part).join(": ")}`;
    this.status.command = asks.length > 0 ? "agentLs.answer" : "agentLs.agents.focus";
    this.status.backgroundColor = asks.length > 0 ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.status.tooltip = asks[0] ? `${who(asks[0].params.agent)} asks: ${visible(asks[0].params.title)}` : (fault ?? "Agents");
    this.status.show();
    void vscode.commands.executeCommand("setContext", "agentLs.asks", asks.length > 0);
  }
}

function elapsed(info: AgentInfo): string {
  const end = isLive(info) ? Date.now() : info.endedAt ? Date.parse(info.endedAt) : undefined;
  return end === undefined ? "" : duration(end - Date.parse(info.startedAt));
}

function tokens(usage: Usage): string {
  const total = usage.inputTokens + usage.cacheReadTokens + usage.cacheCreationTokens + usage.outputTokens;
  return total > 0 ? `${count(total)} tokens (${share(usage)} cached)` : "";
}

/** Of what was sent to the model. */
function share(usage: Usage): string {
  const sent = usage.inputTokens + usage.cacheReadTokens + usage.cacheCreationTokens;
  return `${sent > 0 ? Math.round((100 * usage.cacheReadTokens) / sent) : 0} %`;
}
