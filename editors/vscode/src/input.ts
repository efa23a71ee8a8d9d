/** Inputs of calls as JSON documents that a person may change. Saving one takes it over into its question. */

import * as vscode from "vscode";
import { message } from "./text";

const SCHEME = "agent-input";
const NAME = "Input.json";
type Taken = (requestId: string, value: Record<string, unknown>) => Promise<void>;

export class Inputs implements vscode.FileSystemProvider, vscode.CodeLensProvider, vscode.Disposable {
  private readonly texts = new Map<string, { text: Uint8Array; at: number }>();
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;
  private readonly parts: vscode.Disposable;

  /** `taken` throws when the question is not open any more. */
  constructor(private readonly taken: Taken) {
    this.parts = vscode.Disposable.from(
      vscode.workspace.registerFileSystemProvider(SCHEME, this, { isCaseSensitive: true }),
      vscode.languages.registerCodeLensProvider({ scheme: SCHEME }, this),
      vscode.workspace.onDidSaveTextDocument((document) => void this.saved(document)),
      this.changed,
    );
  }

  dispose(): void {
    this.parts.dispose();
  }

  /** What was written before, if it was not forgotten, else `text`. */
  async open(requestId: string, text: string): Promise<void> {
    const uri = uriOf(requestId);
    if (!this.texts.has(uri.path)) {
      this.texts.set(uri.path, { text: new TextEncoder().encode(`${text}\n`), at: Date.now() });
    }
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: false });
  }

  /** A document with changes that were not saved stays open: nothing that was written is lost. */
  async forget(requestId: string): Promise<void> {
    const uri = uriOf(requestId);
    this.texts.delete(uri.path);
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const found = tabs.filter(
      ({ input, isDirty }) => !isDirty && input instanceof vscode.TabInputText && input.uri.toString() === uri.toString(),
    );
    if (found.length > 0) {
      await vscode.window.tabGroups.close(found, true);
    }
  }

  private async saved(document: vscode.TextDocument): Promise<void> {
    if (document.uri.scheme !== SCHEME) {
      return;
    }
    const requestId = document.uri.path.split("/")[1] ?? "";
    try {
      await this.taken(requestId, parsed(document.getText()));
    } catch (error) {
      void vscode.window.showErrorMessage(`Not used: ${message(error)}`);
    }
  }

  provideCodeLenses(): vscode.CodeLens[] {
    const lens = (title: string, command: string): vscode.CodeLens =>
      new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), { title, command });
    return [
      lens("Use this input (save)", "workbench.action.files.save"),
      lens("Leave it as it was", "workbench.action.revertAndCloseActiveEditor"),
    ];
  }

  // The file system

  stat(uri: vscode.Uri): vscode.FileStat {
    const { text, at } = this.found(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: at, size: text.length };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return this.found(uri).text;
  }

  writeFile(uri: vscode.Uri, text: Uint8Array): void {
    this.texts.set(uri.path, { text, at: Date.now() });
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  private found(uri: vscode.Uri): { text: Uint8Array; at: number } {
    const known = this.texts.get(uri.path);
    if (!known) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    return known;
  }
}

function uriOf(requestId: string): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: `/${requestId}/${NAME}` });
}

function parsed(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`this is no JSON that can run. ${message(error)}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error("it must be an object: { ... }");
  }
  return value as Record<string, unknown>;
}
