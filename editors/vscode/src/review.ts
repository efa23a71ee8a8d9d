/**
 * What an isolated agent has changed, by file and hunk, next to the user's text as it is now.
 *
 * Accepting and rejecting go through the server: it writes closed files, and edits open ones by `workspace/applyEdit`,
 * which leaves them unsaved. Every step leaves a way back.
 */

import * as vscode from "vscode";
import { type Agents, titleOf } from "./agents";
import type { Connection } from "./client";
import { Comments } from "./comments";
import { currentText } from "./edits";
import type { FileChange, FileSelection, Hunk, Review } from "./protocol";
import { message, plural, visible } from "./text";

export type ReviewNode =
  | { kind: "file"; file: FileChange }
  | { kind: "hunk"; file: FileChange; hunk: Hunk }
  | { kind: "note"; file: FileChange; text: string; conflict: boolean };

interface Session {
  agentId: string;
  title: string;
  review: Review;
  /** Recovery refs, the newest last. */
  undo: string[];
  notice: string;
}

const SCHEME = "agent-review";
const SETTLE_MS = 400;

export class Reviews implements vscode.TreeDataProvider<ReviewNode>, vscode.TextDocumentContentProvider, vscode.Disposable {
  private session: Session | undefined;
  private readonly redraw = new vscode.EventEmitter<void>();
  private readonly text = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChangeTreeData = this.redraw.event;
  readonly onDidChange = this.text.event;
  /** Contents of both sides were frozen again. */
  private readonly frozen = new vscode.EventEmitter<string[]>();
  readonly onFrozen = this.frozen.event;
  private readonly tree: vscode.TreeView<ReviewNode>;
  private readonly parts: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private work: Promise<void> = Promise.resolve();
  /** Steps under way, by what they do. */
  private readonly steps = new Map<string, Promise<void>>();
  private shown = "";
  readonly comments: Comments;

  constructor(
    private readonly connection: Connection,
    private readonly agents: Agents,
  ) {
    this.tree = vscode.window.createTreeView<ReviewNode>("agentLs.review", { treeDataProvider: this, showCollapseAll: false });
    this.comments = new Comments(connection, () => this.session && { agentId: this.session.agentId, files: this.session.review.files });
    this.parts = [
      this.tree,
      this.comments,
      this.comments.onChanged(() => this.show()),
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) {
          this.touched(document.uri);
        }
      }),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => this.touched(uri)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.touched(uri)),
      agents.onEnded(({ id }) => {
        if (id === this.session?.agentId) {
          this.soon();
        }
      }),
      this.redraw,
      this.text,
      this.frozen,
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.parts).dispose();
  }

  get agentId(): string | undefined {
    return this.session?.agentId;
  }

  // What is reviewed

  async open(agentId: string): Promise<void> {
    const review = await this.connection.request("review", { agentId });
    const undo = this.session?.agentId === agentId ? this.session.undo : [];
    const info = this.agents.get(agentId);
    this.session = { agentId, title: info ? titleOf(info) : agentId, review, undo, notice: "" };
    await vscode.commands.executeCommand("setContext", "agentLs.reviewing", true);
    this.show();
    await vscode.commands.executeCommand("agentLs.review.focus");
    await this.openChanges();
  }

  /** All files in one view, as the agent found and left them. */
  async openChanges(): Promise<void> {
    if (!this.session || this.session.review.files.length === 0) {
      return;
    }
    const files = this.session.review.files.map((file) => {
      const before = file.status === "added" ? undefined : vscode.Uri.parse(file.baseUri);
      const after = file.status === "deleted" ? undefined : vscode.Uri.parse(file.worktreeUri);
      return [vscode.Uri.parse(file.uri), before, after];
    });
    await vscode.commands.executeCommand("vscode.changes", `Changes of ${this.session.title}`, files);
  }

  async close(): Promise<void> {
    this.session = undefined;
    await vscode.commands.executeCommand("setContext", "agentLs.reviewing", false);
    this.show();
  }

  private touched(uri: vscode.Uri): void {
    if (uri.scheme === "file" && this.session?.review.files.some((file) => sameFile(file.uri, uri))) {
      this.soon();
    }
  }

  /** Reads the review again when the text has come to rest. */
  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.queued(() => this.fetch()).catch(() => undefined), SETTLE_MS);
  }

  private async fetch(): Promise<void> {
    const session = this.session;
    if (!session) {
      return;
    }
    const review = await this.connection.request("review", { agentId: session.agentId });
    if (this.session === session) {
      session.review = review;
      this.show();
    }
  }

  /** One step after the other. */
  private queued(step: () => Promise<void>): Promise<void> {
    const next = this.work.then(step, step);
    this.work = next.catch(() => undefined);
    return next;
  }

  // Accept, reject, undo

  async accept(files?: FileSelection[]): Promise<void> {
    await this.step(`accept ${JSON.stringify(files)}`, async (session) => {
      if (!(await this.confirmed(session, files))) {
        return;
      }
      const open = new Set(session.review.files.flatMap(({ hunks }) => hunks.filter(isOpen).map(({ id }) => id)));
      const result = await this.connection.request("apply", { agentId: session.agentId, ...(files ? { files } : {}) });
      this.remember(session, result.recoverRef);
      // It names those too that were accepted before and are there.
      const done = result.applied.flatMap(({ hunks }) => hunks).filter((id) => open.has(id)).length;
      const parts = [done > 0 ? `Accepted ${plural(done, "change")}, ${result.remaining} left.` : "Nothing was accepted."];
      parts.push(...result.conflicts.map(({ path, reason }) => `${path}: ${reason}`));
      session.notice = [...parts, result.failureReason ?? ""].filter((part) => part).join(" ");
      if (result.failureReason || (done === 0 && result.conflicts.length > 0)) {
        void vscode.window.showWarningMessage(session.notice);
      }
    });
  }

  async reject(files?: FileSelection[]): Promise<void> {
    await this.step(`reject ${JSON.stringify(files)}`, async (session) => {
      const result = await this.connection.request("discard", { agentId: session.agentId, ...(files ? { files } : {}) });
      this.remember(session, result.recoverRef);
      session.notice = `Rejected ${plural(total(result.discarded), "change")}. The agent's version is kept.`;
    });
  }

  async undo(): Promise<void> {
    await this.step("undo", async (session) => {
      const recoverRef = session.undo.at(-1);
      if (recoverRef === undefined) {
        return;
      }
      const { restored, conflicts } = await this.connection.request("restore", { agentId: session.agentId, recoverRef });
      session.undo.pop();
      const parts = [restored.length > 0 ? `Undone: ${restored.join(", ")}.` : "Nothing was undone."];
      session.notice = [...parts, ...conflicts.map(({ path, reason }) => `${path}: ${reason}`)].join(" ");
      if (conflicts.length > 0) {
        void vscode.window.showWarningMessage(session.notice);
      }
    });
  }

  async sendComments(): Promise<void> {
    await this.step("comments", async (session) => {
      const sent = await this.comments.send(session.agentId);
      session.notice = sent > 0 ? `Sent ${plural(sent, "comment")}. The agent goes on; its changes follow here.` : "There is no comment to send.";
    });
  }

  private remember(session: Session, recoverRef: string | undefined): void {
    if (recoverRef) {
      session.undo.push(recoverRef);
    }
  }

  /** A second click on what is under way is the same step. */
  private async step(name: string, work: (session: Session) => Promise<void>): Promise<void> {
    const step = this.steps.get(name) ?? this.queuedStep(work).finally(() => this.steps.delete(name));
    this.steps.set(name, step);
    await step;
  }

  private queuedStep(work: (session: Session) => Promise<void>): Promise<void> {
    return this.queued(async () => {
      const session = this.session;
      if (!session) {
        return;
      }
      try {
        await work(session);
        await this.fetch();
      } catch (error) {
        session.notice = message(error);
        this.show();
        throw error;
      }
    });
  }

  private async confirmed({ review }: Session, selected?: FileSelection[]): Promise<boolean> {
    const paths = selected?.map(({ path }) => path);
    const risky = review.files.filter(
      (file) => file.needsConfirmation && (!paths || paths.includes(file.path)) && file.hunks.some(isOpen),
    );
    if (risky.length === 0) {
      return true;
    }
    const deleted = risky.every(({ status }) => status === "deleted");
    const verb = deleted ? "Delete" : "Accept";
    const detail = risky.map((file) => [`${file.path} (${file.status})`, ...file.notes.map((note) => `  ${note}`)].join("\n")).join("\n");
    const question = deleted ? `Delete ${plural(risky.length, "file")}?` : `Accept these changes of ${plural(risky.length, "file")}?`;
    return (await vscode.window.showWarningMessage(question, { modal: true, detail }, verb)) === verb;
  }

  // The tree

  private show(): void {
    const session = this.session;
    const unsent = session ? this.comments.of(session.agentId) : 0;
    const shown = JSON.stringify([session, unsent]);
    // A row that is drawn anew under the pointer loses its click.
    if (shown !== this.shown) {
      this.shown = shown;
      this.tree.message = session ? headline(session, unsent) : "";
      this.tree.description = session?.title ?? "";
      void vscode.commands.executeCommand("setContext", "agentLs.canUndo", (session?.undo.length ?? 0) > 0);
      void vscode.commands.executeCommand("setContext", "agentLs.canSend", unsent > 0);
      this.redraw.fire();
    }
    for (const document of vscode.workspace.textDocuments.filter(({ uri }) => uri.scheme === SCHEME)) {
      this.text.fire(document.uri);
    }
    this.frozen.fire(session?.review.files.flatMap(({ baseUri, worktreeUri }) => [baseUri, worktreeUri]) ?? []);
  }

  getChildren(node?: ReviewNode): ReviewNode[] {
    if (!node) {
      return this.session?.review.files.map((file): ReviewNode => ({ kind: "file", file })) ?? [];
    }
    if (node.kind !== "file") {
      return [];
    }
    const { file } = node;
    const notes = file.notes.map((text): ReviewNode => ({ kind: "note", file, text, conflict: false }));
    const conflicts: ReviewNode[] = file.conflict ? [{ kind: "note", file, text: file.conflict.reason, conflict: true }] : [];
    return [...conflicts, ...notes, ...file.hunks.map((hunk): ReviewNode => ({ kind: "hunk", file, hunk }))];
  }

  getTreeItem(node: ReviewNode): vscode.TreeItem {
    const item = node.kind === "file" ? fileItem(node.file) : node.kind === "hunk" ? hunkItem(node.file, node.hunk) : noteItem(node);
    if (node.kind !== "note" || node.file.hunks.length > 0) {
      item.command = { command: "agentLs.showChange", title: "Show Change", arguments: [node] };
    }
    return item;
  }

  // The user's text and the proposal

  async showChange(node: ReviewNode): Promise<void> {
    const { file } = node;
    if (file.binary) {
      return;
    }
    const side = (name: "now" | "proposed"): vscode.Uri => vscode.Uri.from({ scheme: SCHEME, path: `/${file.path}`, query: name });
    const options: vscode.TextDocumentShowOptions = { preview: true, preserveFocus: true };
    if (node.kind === "hunk") {
      const line = Math.max(node.hunk.newStart - 1, 0);
      options.selection = new vscode.Range(line, 0, line, 0);
    }
    const name = file.path.split("/").at(-1) ?? file.path;
    const title = `${name}: now ↔ proposed`;
    await vscode.commands.executeCommand("vscode.diff", side("now"), side("proposed"), title, options);
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const file = this.session?.review.files.find(({ path }) => `/${path}` === uri.path);
    if (!file) {
      return "";
    }
    const now = await nowText(file);
    return uri.query === "now" ? now : proposedText(file, now);
  }
}

async function nowText(file: FileChange): Promise<string> {
  const uri = vscode.Uri.parse(file.uri);
  const found = await currentText(uri);
  if (found !== undefined || !file.oldPath) {
    return found ?? "";
  }
  const folder = uri.path.slice(0, uri.path.length - file.path.length);
  return (await currentText(uri.with({ path: folder + file.oldPath }))) ?? "";
}

/** With all open hunks made. */
function proposedText(file: FileChange, now: string): string {
  const open = openHunks(file);
  if (file.status === "deleted" && open.length > 0) {
    return "";
  }
  const lines = now.split("\n");
  for (const hunk of open.filter(({ text }) => text !== "").sort((one, other) => other.oldStart - one.oldStart)) {
    const { old, fresh } = sides(hunk);
    const first = hunk.oldLines === 0 ? hunk.oldStart : hunk.oldStart - 1;
    if (old.some((line, index) => withoutCr(lines[first + index] ?? "") !== line)) {
      return "Your text has changed since this review was made. It is made again as soon as you pause.\n";
    }
    lines.splice(first, old.length, ...fresh);
  }
  return lines.join("\n");
}

function sides(hunk: Hunk): { old: string[]; fresh: string[] } {
  const lines = hunk.text.split("\n").map(withoutCr);
  const of = (sign: string): string[] => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1));
  return { old: of("-"), fresh: of("+") };
}

function withoutCr(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** Those that can be taken as they are. */
function openHunks(file: FileChange): Hunk[] {
  return file.hunks.filter((hunk) => hunk.state === "open" && !isBlocked(file, hunk));
}

function isOpen({ state }: Hunk): boolean {
  return state === "open";
}

function isBlocked(file: FileChange, hunk: Hunk): boolean {
  return file.conflict?.hunks.includes(hunk.id) ?? false;
}

function headline({ review, notice }: Session, unsent: number): string {
  const { files, insertions, deletions } = review.stats;
  if (review.files.length === 0) {
    return "This agent changed nothing.";
  }
  const open = review.files.flatMap((file) => file.hunks).filter(isOpen).length;
  const waiting = unsent > 0 ? `, ${plural(unsent, "comment")} not sent` : "";
  const facts = `${plural(files, "file")}, +${insertions} −${deletions}, ${open} open${waiting}, since ${review.base.commit.slice(0, 8)}`;
  return notice ? `${facts}. ${notice}` : facts;
}

function fileItem(file: FileChange): vscode.TreeItem {
  const item = new vscode.TreeItem(visible(file.path), vscode.TreeItemCollapsibleState.Expanded);
  const open = file.hunks.filter(isOpen).length;
  item.id = `file:${file.path}`;
  item.iconPath = vscode.ThemeIcon.File;
  item.resourceUri = vscode.Uri.parse(file.uri).with({ scheme: SCHEME, query: "now" });
  item.contextValue = open > 0 ? "file.open" : "file.decided";
  const renamed = file.oldPath && file.oldPath !== file.path ? `was ${visible(file.oldPath)}, ` : "";
  item.description = `${renamed}${file.status}, ${open > 0 ? `${open} open` : "decided"}${file.conflict ? ", conflict" : ""}`;
  item.tooltip = [file.path, item.description, ...file.notes].join("\n");
  return item;
}

function hunkItem(file: FileChange, hunk: Hunk): vscode.TreeItem {
  const { old, fresh } = sides(hunk);
  const asOpen = hunk.state === "open" && hunk.newLines > 0;
  const [start, count] = asOpen ? [hunk.newStart, hunk.newLines] : [hunk.oldStart, hunk.oldLines];
  const where = count > 1 ? `lines ${start}-${start + count - 1}` : `line ${Math.max(start, 1)}`;
  const line = fresh[0] !== undefined ? `+ ${fresh[0].trim()}` : `− ${(old[0] ?? "").trim()}`;
  const item = new vscode.TreeItem(hunk.text === "" ? visible(hunk.header) : `${where}: ${visible(line)}`);
  const state = isBlocked(file, hunk) && hunk.state === "open" ? "conflict" : hunk.state;
  item.id = `hunk:${file.path}:${hunk.id}`;
  item.contextValue = `hunk.${state}`;
  item.description = state === "open" ? "" : state;
  item.iconPath = new vscode.ThemeIcon({ open: "circle-large-outline", accepted: "check", rejected: "close", conflict: "warning" }[state]);
  item.tooltip = hunk.text ? `${where}\n${visible(hunk.text, "\n\t")}` : hunk.header;
  item.accessibilityInformation = { label: `${item.label as string}, ${state}` };
  return item;
}

function noteItem({ file, text, conflict }: Extract<ReviewNode, { kind: "note" }>): vscode.TreeItem {
  const item = new vscode.TreeItem(visible(text));
  item.id = `${conflict ? "conflict" : "note"}:${file.path}:${text}`;
  item.contextValue = "note";
  item.iconPath = new vscode.ThemeIcon(conflict ? "warning" : "info");
  item.tooltip = text;
  return item;
}

function total(files: { hunks: string[] }[]): number {
  return files.reduce((sum, { hunks }) => sum + hunks.length, 0);
}

function sameFile(uri: string, other: vscode.Uri): boolean {
  return vscode.Uri.parse(uri).fsPath === other.fsPath;
}
