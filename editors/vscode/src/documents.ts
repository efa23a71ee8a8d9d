/** Read-only documents of the server: `agent-base:`, `agent-worktree:` and `agent-transcript:`. */

import * as vscode from "vscode";
import type { Agents } from "./agents";
import type { Connection } from "./client";
import { message } from "./text";

const TRANSCRIPT = "agent-transcript";
const SCHEMES = ["agent-base", "agent-worktree", TRANSCRIPT];
const FOLLOW_MS = 300;

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly parts: vscode.Disposable[];
  private readonly stale = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly connection: Connection,
    private readonly agents: Agents,
  ) {
    this.parts = [
      ...SCHEMES.map((scheme) => vscode.workspace.registerTextDocumentContentProvider(scheme, this)),
      agents.onChanged((id) => this.follow(id)),
      this.changed,
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.parts).dispose();
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    try {
      const { text } = await this.connection.request("content", { uri: uri.toString() }, token);
      const saying = uri.scheme === TRANSCRIPT ? this.agents.saying(agentOf(uri)) : "";
      return saying ? `${text}\n${saying} …\n` : text;
    } catch (error) {
      return `This cannot be shown: ${message(error)}\n`;
    }
  }

  /** The server's text may have changed: the agent worked on, or a review was frozen again. */
  refresh(uris: Iterable<string>): void {
    for (const uri of uris) {
      this.changed.fire(vscode.Uri.parse(uri));
    }
  }

  async showTranscript(agentId: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: TRANSCRIPT, path: `/${agentId}.md` });
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Transcripts that are open follow their agent. */
  private follow(id: string | undefined): void {
    const open = vscode.workspace.textDocuments.filter(({ uri }) => uri.scheme === TRANSCRIPT);
    for (const { uri } of open.filter((document) => id === undefined || agentOf(document.uri) === id)) {
      this.stale.add(uri.toString());
    }
    if (this.stale.size > 0) {
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.refresh(this.stale);
        this.stale.clear();
      }, FOLLOW_MS);
    }
  }
}

function agentOf(uri: vscode.Uri): string {
  return uri.path.slice(1).replace(/\.md$/, "");
}
