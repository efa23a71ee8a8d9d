/**
 * Comments on lines of an agent's changes: native threads in the diff of a review. They are collected, and sent together as
 * one message, which the agent goes on with.
 */

import * as vscode from "vscode";
import type { Connection } from "./client";
import type { Comment as WireComment, FileChange } from "./protocol";

/** The agent's side of a review; its lines are those that the agent knows. */
const SCHEME = "agent-worktree";
const AUTHOR = { name: "You, not sent yet" };

export interface Reviewed {
  agentId: string;
  files: readonly FileChange[];
}

/** One that waits to be sent. */
interface Draft extends vscode.Comment {
  agentId: string;
  thread: vscode.CommentThread;
  wire: WireComment;
}

export class Comments implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("agentLs.comments", "Comments for an agent");
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onChanged = this.changed.event;
  private drafts: Draft[] = [];

  constructor(
    private readonly connection: Connection,
    private readonly reviewed: () => Reviewed | undefined,
  ) {
    this.controller.options = { prompt: "Comment for the agent", placeHolder: "What shall the agent change here?" };
    this.controller.commentingRangeProvider = {
      provideCommentingRanges: (document) =>
        this.fileOf(document.uri) ? [new vscode.Range(0, 0, Math.max(document.lineCount - 1, 0), 0)] : [],
    };
  }

  dispose(): void {
    this.controller.dispose();
    this.changed.dispose();
  }

  /** How many wait to be sent to this agent. */
  of(agentId: string): number {
    return this.drafts.filter((draft) => draft.agentId === agentId).length;
  }

  /** What was typed into a thread: its first comment, or one more on the same line. */
  add({ thread, text }: vscode.CommentReply): void {
    const file = this.fileOf(thread.uri);
    const agentId = this.reviewed()?.agentId;
    if (!file || agentId === undefined || !text.trim()) {
      return;
    }
    const line = thread.range?.end.line;
    const draft: Draft = {
      agentId,
      thread,
      wire: { path: file.path, text: text.trim(), ...(line === undefined ? {} : { line }) },
      body: new vscode.MarkdownString().appendText(text.trim()),
      mode: vscode.CommentMode.Preview,
      author: AUTHOR,
      contextValue: "draft",
    };
    this.drafts.push(draft);
    thread.label = line === undefined ? file.path : `Line ${line + 1}`;
    thread.canReply = true;
    this.show(thread);
  }

  remove(draft: vscode.Comment): void {
    const found = this.drafts.find((each) => each === draft);
    if (found) {
      this.drafts = this.drafts.filter((each) => each !== found);
      this.show(found.thread);
    }
  }

  /** How many were sent. Those that did not arrive stay. */
  async send(agentId: string): Promise<number> {
    const sent = this.drafts.filter((draft) => draft.agentId === agentId);
    if (sent.length > 0) {
      const comments = sent.map(({ wire }) => wire).sort((one, other) => place(one).localeCompare(place(other)));
      await this.connection.request("comment", { agentId, comments });
      this.drafts = this.drafts.filter((draft) => !sent.includes(draft));
      new Set(sent.map(({ thread }) => thread)).forEach((thread) => this.show(thread));
    }
    return sent.length;
  }

  private show(thread: vscode.CommentThread): void {
    thread.comments = this.drafts.filter((draft) => draft.thread === thread);
    if (thread.comments.length === 0) {
      thread.dispose();
    }
    this.changed.fire();
  }

  private fileOf(uri: vscode.Uri): FileChange | undefined {
    if (uri.scheme !== SCHEME) {
      return undefined;
    }
    const text = uri.toString();
    return this.reviewed()?.files.find(({ worktreeUri }) => vscode.Uri.parse(worktreeUri).toString() === text);
  }
}

/** By file, then by line. */
function place({ path, line }: WireComment): string {
  return `${path}\0${String(line ?? 0).padStart(9, "0")}`;
}
