/**
 * Questions of agents: a queue, and the document in which one is read and answered. A question opens nothing by itself: it
 * shows in the tree, as a badge and in the status bar.
 *
 * The document has no default answer, and for a moment after a question was drawn nothing counts as one.
 */

import * as vscode from "vscode";
import type { Connection } from "./client";
import { proposals, type Proposal } from "./edits";
import type { PermissionOption, PermissionParams, PermissionResult } from "./protocol";
import { message, plural, visible, visibleLines, who } from "./text";

export interface Ask {
  params: PermissionParams;
}

interface Open extends Ask {
  /** Answers the server's own request; without it the answer goes by `agent/answer`. */
  reply: ((result: PermissionResult) => void) | undefined;
}

const GUARD_MS = 400;
/** A list cuts longer lines off, and a rule that is not read whole is not to be chosen. */
const PICK_WIDTH = 75;
const OPEN = "open";
const URI = vscode.Uri.from({ scheme: "agent-question", path: "/Agent asks" });
const PROPOSED = "agent-proposed";
const NOTHING = "No question is open.\n";
const SHORT: Record<PermissionOption["kind"], string> = {
  allowOnce: "Allow once",
  allowSession: "Allow for session",
  allowAlways: "Always allow",
  rejectOnce: "Reject",
  rejectSession: "Reject for session",
  rejectAlways: "Always reject",
  rejectAndStop: "Reject and stop",
};

export class Asks implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider, vscode.Disposable {
  private queue: Open[] = [];
  private current: Open | undefined;
  /** The question whose text is drawn, and since when. */
  private drawn: { requestId: string; at: number } | undefined;
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly text = new vscode.EventEmitter<vscode.Uri>();
  private readonly lenses = new vscode.EventEmitter<void>();
  private picking: vscode.QuickPick<Choice> | undefined;
  readonly onChanged = this.changed.event;
  readonly onDidChange = this.text.event;
  readonly onDidChangeCodeLenses = this.lenses.event;
  private readonly proposed = new Map<string, string>();
  private readonly parts: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly connection: Connection) {
    connection.answering = (params, token) => this.asked(params, token);
    this.parts = [
      vscode.workspace.registerTextDocumentContentProvider(URI.scheme, this),
      vscode.workspace.registerTextDocumentContentProvider(PROPOSED, {
        provideTextDocumentContent: (uri) => this.proposed.get(uri.toString()) ?? "",
      }),
      vscode.languages.registerCodeLensProvider({ scheme: URI.scheme }, this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.sawText(document)),
      vscode.workspace.onDidOpenTextDocument((document) => this.sawText(document)),
      vscode.window.onDidChangeVisibleTextEditors((editors) => {
        if (editors.some(({ document }) => document.uri.scheme === URI.scheme)) {
          this.showLinks();
        }
      }),
      connection.onReady(() => void this.fetch().catch(() => undefined)),
      connection.onGone(() => this.lost()),
      connection.onProgress(({ agentId, event }) => {
        if (event["kind"] === "permissionResolved") {
          this.withdraw(String(event["requestId"]));
        } else if (event["kind"] === "ended") {
          this.queue.filter(({ params }) => params.agent.id === agentId).forEach((ask) => this.withdraw(ask.params.requestId));
        }
      }),
      this.changed,
      this.text,
      this.lenses,
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.parts).dispose();
  }

  all(): readonly Ask[] {
    return this.queue;
  }

  /** How many questions this agent has open. */
  of(agentId: string): number {
    return this.queue.filter(({ params }) => params.agent.id === agentId).length;
  }

  // The queue

  private asked(params: PermissionParams, token: vscode.CancellationToken): Promise<PermissionResult> {
    return new Promise((resolve) => {
      this.add(params, resolve);
      token.onCancellationRequested(() => this.withdraw(params.requestId));
    });
  }

  private async fetch(): Promise<void> {
    const { requests } = await this.connection.request("permissions", {});
    for (const params of requests) {
      this.add(params, undefined);
    }
  }

  private add(params: PermissionParams, reply: Open["reply"]): void {
    const known = this.queue.find((ask) => ask.params.requestId === params.requestId);
    if (known) {
      known.reply ??= reply;
      return;
    }
    this.queue.push({ params, reply });
    this.current ??= documentIsOpen() ? this.queue[0] : undefined;
    this.redraw();
  }

  /** It was answered elsewhere, or nobody needs the answer any more. */
  private withdraw(requestId: string): void {
    const ask = this.queue.find(({ params }) => params.requestId === requestId);
    if (ask) {
      ask.reply?.({ cancelled: true });
      this.remove(ask);
    }
  }

  private lost(): void {
    for (const ask of [...this.queue]) {
      this.withdraw(ask.params.requestId);
    }
  }

  private remove(ask: Open): void {
    this.queue = this.queue.filter((each) => each !== ask);
    if (this.current === ask) {
      this.current = this.queue[0];
      this.picking?.hide();
    }
    for (const uri of [...this.proposed.keys()].filter((each) => each.includes(ask.params.requestId))) {
      this.proposed.delete(uri);
    }
    void closeTabs((tab) => isDiffOf(tab, ask.params.requestId));
    this.redraw();
  }

  private redraw(): void {
    this.text.fire(URI);
    this.lenses.fire();
    this.changed.fire();
  }

  // Answering

  private async answer(ask: Open, option: PermissionOption, comment?: string): Promise<void> {
    if (!this.queue.includes(ask)) {
      return;
    }
    const { requestId } = ask.params;
    const { destination } = option;
    const result: PermissionResult = {
      optionId: option.id,
      ...(comment ? { comment } : {}),
      ...(destination ? { destination } : {}),
    };
    this.remove(ask);
    if (ask.reply) {
      ask.reply(result);
    } else {
      try {
        const { accepted, reason } = await this.connection.request("answer", { requestId, ...result });
        if (!accepted) {
          void vscode.window.showWarningMessage(`The answer came too late: ${reason ?? "the question is not open any more"}`);
        }
      } catch (error) {
        void vscode.window.showErrorMessage(`The answer did not arrive: ${message(error)}`);
      }
    }
    if (!this.current) {
      await closeTabs((tab) => tab.input instanceof vscode.TabInputText && tab.input.uri.scheme === URI.scheme);
    }
  }

  private async rejectWithReason(ask: Open): Promise<void> {
    const option = offered(ask.params).find(({ kind }) => kind === "rejectOnce");
    if (!option) {
      return;
    }
    const prompt = `Rejects: ${visible(ask.params.title)}. The agent reads your reason.`;
    const reason = await vscode.window.showInputBox({ title: "Why not?", prompt, ignoreFocusOut: true });
    if (reason?.trim()) {
      await this.answer(ask, option, reason.trim());
    }
  }

  /** Does what was drawn long enough to be read belong to this question? */
  private mayAnswer(requestId: string): boolean {
    return this.drawn?.requestId === requestId && Date.now() - this.drawn.at >= GUARD_MS;
  }

  /** A key in the document: the number of an option, or `r`. */
  async key(key: string): Promise<void> {
    const ask = this.current;
    if (ask && this.mayAnswer(ask.params.requestId)) {
      await this.choose(ask, key);
    }
  }

  /** A link in the document. It answers the question that it was drawn for, and no other. */
  async link(requestId: string, key: string): Promise<void> {
    const ask = this.queue.find(({ params }) => params.requestId === requestId);
    if (ask && this.current === ask && this.mayAnswer(requestId)) {
      await this.choose(ask, key);
    }
  }

  private async choose(ask: Open, key: string): Promise<void> {
    const option = offered(ask.params)[Number(key) - 1];
    if (key === "r") {
      await this.rejectWithReason(ask);
    } else if (option) {
      await this.answer(ask, option);
    }
  }

  /** A list, for keyboards and for the diff, where the document is out of sight. "Decide later" comes first. */
  pick(): void {
    const ask = this.current ?? this.queue[0];
    if (!ask) {
      void vscode.window.showInformationMessage("No agent asks for anything.");
      return;
    }
    const picker = vscode.window.createQuickPick<Choice>();
    picker.title = [who(ask.params.agent), ...ask.params.agent.chain.map((link) => `for ${who(link)}`)].join(", ");
    picker.placeholder = `asks: ${visible(ask.params.title)}`;
    picker.ignoreFocusOut = true;
    const whole = offered(ask.params).map((option, index) => ({ label: visible(option.label), key: String(index + 1) }));
    const fitting = whole.filter(({ label }) => label.length <= PICK_WIDTH);
    const later: Choice = { label: "Decide later", key: undefined };
    picker.items = [later];
    // Answers appear when they count.
    const guard = setTimeout(() => {
      picker.items = [
        later,
        ...fitting,
        ...(canReason(ask.params) ? [{ label: "Reject and say why…", key: "r" }] : []),
        ...(fitting.length < whole.length ? [{ label: "All answers, with their whole rules…", key: OPEN }] : []),
      ];
    }, GUARD_MS);
    picker.onDidAccept(() => {
      const key = picker.selectedItems[0]?.key;
      picker.hide();
      if (key === OPEN) {
        void this.open(ask.params.requestId);
      } else if (key !== undefined) {
        void this.choose(ask, key);
      }
    });
    picker.onDidHide(() => {
      clearTimeout(guard);
      this.picking = undefined;
      picker.dispose();
    });
    this.picking = picker;
    this.current = ask;
    picker.show();
  }

  // The document

  /** Opens a question, the oldest one when none is named. */
  async open(requestId?: string): Promise<void> {
    const ask = this.queue.find(({ params }) => params.requestId === requestId) ?? this.queue[0];
    if (!ask) {
      void vscode.window.showInformationMessage("No agent asks for anything.");
      return;
    }
    if (this.current !== ask) {
      this.current = ask;
      this.drawn = undefined;
      this.redraw();
    }
    const document = await vscode.workspace.openTextDocument(URI);
    await vscode.window.showTextDocument(document, { preview: false });
    this.sawText(document);
  }

  private sawText(document: vscode.TextDocument): void {
    if (document.uri.toString() !== URI.toString()) {
      return;
    }
    const ask = this.current;
    if (!ask || document.getText() !== this.provideTextDocumentContent()) {
      this.drawn = undefined;
    } else if (this.drawn?.requestId !== ask.params.requestId) {
      this.drawn = { requestId: ask.params.requestId, at: Date.now() };
      this.showLinks();
    }
  }

  /** Links appear when they count. */
  private showLinks(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.lenses.fire(), GUARD_MS + 20);
  }

  provideTextDocumentContent(): string {
    const ask = this.current;
    return ask ? questionText(ask.params, this.queue.indexOf(ask) + 1, this.queue.length) : NOTHING;
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const ask = this.current;
    const lines = document.getText().split("\n");
    if (!ask) {
      return [];
    }
    const { requestId } = ask.params;
    const lens = (line: number, title: string, command: string, ...args: unknown[]): vscode.CodeLens =>
      new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command, arguments: args });
    const answers = lines.indexOf("Your answer:");
    const change = lines.indexOf("Change:");
    const options = offered(ask.params);
    const rejects = answers + 1 + options.findIndex(({ kind }) => kind.startsWith("reject"));
    const found = options.map((option, index) => {
      const line = option.kind.startsWith("reject") ? rejects : answers;
      return lens(line, `${index + 1} ${SHORT[option.kind]}`, "agentLs.link", requestId, String(index + 1));
    });
    if (canReason(ask.params)) {
      found.push(lens(rejects, "r Reject and say why", "agentLs.link", requestId, "r"));
    }
    if (change >= 0 && ask.params.detail?.edit) {
      found.push(lens(change, "Show side by side", "agentLs.showProposed", requestId));
    }
    // Between two questions the text may still be the last one's.
    return this.mayAnswer(requestId) && document.getText() === this.provideTextDocumentContent() ? found : [];
  }

  /** The change in the native diff editor, against the text as it is now. */
  async showProposed(requestId: string): Promise<void> {
    const ask = this.queue.find(({ params }) => params.requestId === requestId);
    if (!ask) {
      return;
    }
    for (const proposal of await proposals(ask.params.detail?.edit)) {
      await this.showDiff(ask, proposal);
    }
  }

  private async showDiff(ask: Open, { uri, before, after }: Proposal): Promise<void> {
    const name = uri.path.split("/").at(-1) ?? uri.path;
    const side = (query: string): vscode.Uri =>
      vscode.Uri.from({ scheme: PROPOSED, path: `/${ask.params.requestId}/${name}`, query });
    this.proposed.set(side("now").toString(), before);
    this.proposed.set(side("proposed").toString(), after);
    const title = `${name}: now ↔ asked for by ${visible(ask.params.agent.description || ask.params.agent.agentType)}`;
    await vscode.commands.executeCommand("vscode.diff", side("now"), side("proposed"), title, { preview: true });
  }
}

interface Choice extends vscode.QuickPickItem {
  key: string | undefined;
}

/** Options of a kind that we don't know are not offered. */
function offered(params: PermissionParams): PermissionOption[] {
  return params.options.filter(({ kind }) => kind in SHORT);
}

function canReason(params: PermissionParams): boolean {
  return params.options.some(({ kind }) => kind === "rejectOnce");
}

/** All that is needed to decide. The answers stand below the command, and above a change, which may be long. */
function questionText(params: PermissionParams, index: number, total: number): string {
  const { agent, detail, options } = params;
  const lines = [`Question ${index} of ${total}`, "", who(agent)];
  lines.push(...agent.chain.map((link) => `  for ${who(link)}`), `asks: ${visible(params.title)}`);
  if (params.reason) {
    lines.push(visible(params.reason, "\n"));
  }
  lines.push("");
  if (detail?.command !== undefined) {
    lines.push("Command:", ...visible(detail.command, "\n").split("\n").map((line) => `  ${line}`));
    lines.push(`Directory: ${visible(detail.cwd ?? "unknown")}`, "");
  }
  for (const [name, value] of [["Address", detail?.url], ["Server", detail?.server]] as const) {
    if (value !== undefined) {
      lines.push(`${name}: ${visible(value)}`, "");
    }
  }
  const known = options.filter(({ kind }) => kind in SHORT);
  lines.push("Your answer:", ...known.map((option, number) => `  ${number + 1}  ${visible(option.label)}`));
  if (canReason(params)) {
    lines.push("  r  Reject and say why");
  }
  lines.push("", ...changeLines(params));
  return `${lines.join("\n").trimEnd()}\n`;
}

function changeLines({ detail, tool, input }: PermissionParams): string[] {
  if (detail?.diff) {
    return ["Change:", ...visibleLines(detail.diff).trimEnd().split("\n")];
  }
  if (detail?.command !== undefined || detail?.url !== undefined) {
    return [];
  }
  const lines: string[] = [];
  if (tool.kind === "edit") {
    const text = textOf(input["content"]) ?? textOf(input["new_string"]) ?? "";
    const path = visible(textOf(input["file_path"]) ?? "the file");
    lines.push(`No diff can be shown of ${path}: ${plural(text.split("\n").length, "line")}.`);
  }
  return [...lines, "Input:", ...visibleLines(JSON.stringify(input, null, 2)).split("\n")];
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function documentIsOpen(): boolean {
  return tabs().some(({ input }) => input instanceof vscode.TabInputText && input.uri.scheme === URI.scheme);
}

function tabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

function isDiffOf({ input }: vscode.Tab, requestId: string): boolean {
  return (
    input instanceof vscode.TabInputTextDiff &&
    input.modified.scheme === PROPOSED &&
    input.modified.path.startsWith(`/${requestId}/`)
  );
}

async function closeTabs(fits: (tab: vscode.Tab) => boolean): Promise<void> {
  const found = tabs().filter(fits);
  if (found.length > 0) {
    await vscode.window.tabGroups.close(found, true);
  }
}
